// A session for Python: it keeps what the core only points to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "session/session.h"

namespace timetrial::bindings {

using Weights = std::map<std::string, std::vector<float>>;

class BackendSession {
  public:
    // `preload`: libraries to open before the plug-in.
    BackendSession(const std::string& path, const std::vector<std::string>& preload);

    // As Session::build(). Throws std::invalid_argument for weights that are not the network's parameters.
    void build(const Network& network, OptimizerSpec optimizer, Weights weights, std::uint32_t tasks,
               tt_dtype dtype);

    Session& session() { return session_; }
    const Session& session() const { return session_; }

  private:
    Weights weights_;  // before the session, which points to them
    Session session_;
};

}  // namespace timetrial::bindings
