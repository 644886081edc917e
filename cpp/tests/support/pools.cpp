#include "support/pools.h"

#include <dlfcn.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

namespace timetrial::testing {

void end_pools() {
    if (void* const openmp = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
        using Pause = int (*)(omp_pause_resource_t);
        if (const auto pause = reinterpret_cast<Pause>(dlsym(openmp, "omp_pause_resource_all")))
            pause(omp_pause_hard);  // waits for the threads
        dlclose(openmp);
    }
    // OpenBLAS has no call for it, but ends its threads before a fork.
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0) waitpid(child, nullptr, 0);
}

}  // namespace timetrial::testing
