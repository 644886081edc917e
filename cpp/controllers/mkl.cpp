// Intel's MKL: its dispatcher (libmkl_rt), its parts, or a copy inside something else.
#include <utility>

#include "controllers/catalog.h"

namespace timetrial {
namespace {

// The branches of MKL's conditional numerical reproducibility, as mkl_types.h numbers them: instruction sets.
// "" for the numbers that leave the choice to its dispatcher (off, auto).
const char* branch(int code) {
    switch (code) {
        case 3:
            return "COMPATIBLE";
        case 4:
            return "SSE2";
        case 8:
            return "SSE4.2";
        case 10:
            return "AVX2";
        case 12:
            return "AVX512";
        case 14:
            return "AVX512_E1";
        case 15:
            return "AVX10";
        default:
            return "";
    }
}

class Mkl final : public Library {
  public:
    Mkl(FilePtr file, const Surroundings& around) : Library(std::move(file)) {
        // The dispatcher loads its parts at the first question, and ends the process if they are missing.
        const bool is_dispatcher = this->file().own("MKL_Set_Threading_Layer") != nullptr;
        may_ask_ = !is_dispatcher || around.has("libmkl_core");
        if (around.has("libmkl_sequential")) threading_ = "none";
        if (around.has("libmkl_gnu_thread") || around.has("libmkl_intel_thread")) threading_ = "OpenMP";
        if (around.has("libmkl_tbb_thread")) threading_ = "TBB";
    }

    const char* kind() const override { return "blas"; }
    const char* vendor() const override { return "MKL"; }
    std::string version() const override {
        auto* words = may_ask_ ? file().function<void(char*, int)>("MKL_Get_Version_String") : nullptr;
        if (!words) return may_ask_ ? vendor() : "";
        char text[256] = {};
        words(text, sizeof text - 1);
        return text;
    }

    std::string kernel() const override {
        std::string told = told_branch();
        if (!told.empty()) return told;
        auto* getter = may_ask_ ? file().function<int()>("MKL_CBWR_Get_Auto_Branch") : nullptr;
        return getter ? branch(getter()) : "";
    }
    std::string kernel_getter() const override {
        return told_branch().empty() ? "MKL_CBWR_Get_Auto_Branch()" : "MKL_CBWR_Get(MKL_CBWR_BRANCH)";
    }
    std::string threading() const override { return threading_; }

    std::optional<int> threads() const override {
        if (!may_ask_) return std::nullopt;
        return file().function<int()>("MKL_Get_Max_Threads")();
    }
    std::string threads_getter() const override { return "MKL_Get_Max_Threads()"; }
    bool set_threads(int threads) const override {
        auto* set = may_ask_ ? file().function<void(int)>("MKL_Set_Num_Threads") : nullptr;
        if (set) set(threads);
        return set != nullptr;
    }
    std::string limits() const override {
        if (!may_ask_) return "has not loaded its parts yet: it is asked nothing before its first call";
        return "a number given to one thread alone (mkl_set_num_threads_local) goes before this one";
    }

  private:
    // What MKL_CBWR or mkl_cbwr_set() asked for; "" if nobody did.
    std::string told_branch() const {
        constexpr int kBranch = 1;  // MKL_CBWR_BRANCH
        auto* getter = may_ask_ ? file().function<int(int)>("MKL_CBWR_Get") : nullptr;
        return getter ? branch(getter(kBranch)) : "";
    }

    bool may_ask_;
    std::string threading_;
};

}  // namespace

LibraryPtr make_mkl(const FilePtr& file, const Names&, const Surroundings& around) {
    return file->own("MKL_Get_Max_Threads") ? std::make_shared<Mkl>(file, around) : nullptr;
}

}  // namespace timetrial
