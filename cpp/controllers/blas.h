// A BLAS that is loaded: how many threads it uses, what it is, which kernels it chose. One controller for the
// four kinds of library that have an interface for that; the others answer nothing.
#pragma once

#include <optional>
#include <string>

namespace timetrial {

class BlasControl {
  public:
    // `library` is a handle of dlopen(); `prefix` and `suffix` stand around its names ("scipy_", "64_").
    BlasControl(void* library, std::string prefix, std::string suffix);

    // "OpenBLAS", "BLIS", "MKL", "ATLAS"; "" for any other.
    const std::string& vendor() const { return vendor_; }
    // The function by which the vendor was known; "" if it was not.
    const std::string& sign() const { return sign_; }
    // As the library states it: "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ...". "" if it has no words for it.
    std::string version() const;
    // The kernels in use, in the library's words: "SkylakeX", "zen3", "AVX512". "" if they were fixed when
    // the library was built, or if it does not tell.
    std::string kernel() const;

    // The function that kernel() asks; "" if there is none.
    std::string kernel_getter() const;

    // Whether several threads may call it at once. OpenBLAS built for one thread, without locks around its
    // buffers, gives wrong numbers then (USE_LOCKING in its Makefile.rule; Debian's serial build was seen
    // doing so).
    bool allows_concurrent_calls() const;

    // False if the library cannot be told. What it does with the number is another question: see threads().
    bool set_threads(int threads) const;
    // The library's own answer, which is known to be wrong at times: BLIS's serial build repeats what it was
    // told. Nothing if the library does not tell.
    std::optional<int> threads() const;
    // The function that threads() asks: "openblas_get_num_threads()". "" if there is none.
    std::string threads_getter() const;

  private:
    void* find(const std::string& name) const;
    void* core_name() const;

    void* library_;
    std::string prefix_;
    std::string suffix_;
    std::string vendor_;
    std::string sign_;
};

}  // namespace timetrial
