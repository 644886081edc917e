// What a numerical library that is loaded can be told and asked. One class per library, all of this shape;
// each says what it cannot know.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "controllers/file.h"

namespace timetrial {

// Whose number of threads a library keeps: one for the process, or one for each thread that calls it.
enum class Scope { kProcess, kCallingThread };

class Library {
  public:
    explicit Library(std::shared_ptr<const File> file) : file_(std::move(file)) {}
    virtual ~Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;

    const std::string& path() const { return file_->path(); }
    // "blas", "openmp", "tbb", "onednn", "aten".
    virtual const char* kind() const = 0;
    // "OpenBLAS", "BLIS", "MKL", "ATLAS", "GNU", "LLVM", "Intel", "oneDNN", "PyTorch"; "" if nobody knows.
    virtual const char* vendor() const = 0;
    // As the library states it: "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". "" if it has no words for it.
    virtual std::string version() const { return vendor(); }
    // The kernels in use, in the library's words: "SkylakeX", "zen3", "AVX512"; "" if they were fixed when it
    // was built, or if it does not tell. The getter is the function that tells.
    virtual std::string kernel() const { return ""; }
    virtual std::string kernel_getter() const { return ""; }
    // What its threads are: "pthreads", "OpenMP", "TBB", "none"; "" if it does not tell.
    virtual std::string threading() const { return ""; }
    // The width of its integers, in bits; 0 if it has none or does not tell.
    virtual int integer_bits() const { return 0; }

    // The library's own answer. Nothing if it has none, or cannot be asked here; the getter is the function.
    virtual std::optional<int> threads() const { return std::nullopt; }
    virtual std::string threads_getter() const { return ""; }
    // False if it cannot be told. Whether it heeds the number is another question: see threads().
    virtual bool set_threads(int) const { return false; }
    virtual Scope scope() const { return Scope::kProcess; }
    // What it cannot be told, or what its answers do not mean, in a few words; "" if there is nothing to say.
    virtual std::string limits() const { return ""; }

    // Whether several threads may call it at once.
    virtual bool allows_concurrent_calls() const { return true; }

  protected:
    const File& file() const { return *file_; }

  private:
    std::shared_ptr<const File> file_;
};

using LibraryPtr = std::shared_ptr<const Library>;
using FilePtr = std::shared_ptr<const File>;

}  // namespace timetrial
