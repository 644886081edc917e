# How our own code is compiled. Everything links timetrial_compile.
add_library(timetrial_compile INTERFACE)
target_include_directories(timetrial_compile INTERFACE ${PROJECT_SOURCE_DIR}/cpp/include)
# Nobody reads errno behind sqrt(), and without it loops with roots are vectorized.
target_compile_options(timetrial_compile INTERFACE -fno-math-errno)
target_compile_options(timetrial_compile INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(timetrial_compile INTERFACE -Wno-restrict)  # false alarm on "text" + string (GCC bug 105651)
endif()
if(TIMETRIAL_WERROR)
  target_compile_options(timetrial_compile INTERFACE -Werror)
endif()
if(TIMETRIAL_SANITIZE STREQUAL "threads")
  target_compile_options(timetrial_compile INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(timetrial_compile INTERFACE -fsanitize=thread)
elseif(TIMETRIAL_SANITIZE STREQUAL "memory")
  # A target of others' templates (TIMETRIAL_TEMPLATES) would take minutes to compile with all checks.
  target_compile_options(timetrial_compile INTERFACE -fsanitize=address -fno-sanitize-recover=all -fno-omit-frame-pointer
                         $<$<NOT:$<BOOL:$<TARGET_PROPERTY:TIMETRIAL_TEMPLATES>>>:-fsanitize=undefined>)
  target_link_options(timetrial_compile INTERFACE -fsanitize=address,undefined)
elseif(TIMETRIAL_SANITIZE)
  message(FATAL_ERROR "TIMETRIAL_SANITIZE is '${TIMETRIAL_SANITIZE}'; expected memory, threads or nothing")
endif()

# One object, one ISA: the flags of a variant, and what the CPU must have (names of /proc/cpuinfo).
set(TIMETRIAL_FLAGS_sse2 -msse2)
set(TIMETRIAL_FLAGS_avx2 -mavx2 -mfma)
# GCC 12's own AVX-512 intrinsics read an undefined register on purpose and warn about it (GCC bug 105593).
set(TIMETRIAL_FLAGS_avx512 -mavx512f -mavx512dq -mavx512bw -mavx512vl -mavx2 -mfma -mprefer-vector-width=512
                           -Wno-error=maybe-uninitialized -Wno-maybe-uninitialized -Wno-uninitialized)
set(TIMETRIAL_REQUIRES_sse2 sse2)
set(TIMETRIAL_REQUIRES_avx2 avx2 fma)
set(TIMETRIAL_REQUIRES_avx512 avx512f avx512dq avx512bw avx512vl avx2 fma)
set(TIMETRIAL_RANK_sse2 1)
set(TIMETRIAL_RANK_avx2 2)
set(TIMETRIAL_RANK_avx512 3)

# Every variant is built anywhere, and the CPU that runs it chooses. Sanitizers look at code, which the variants
# share: there one stands for all.
set(TIMETRIAL_ISAS sse2 avx2 avx512)
if(TIMETRIAL_SANITIZE)
  file(STRINGS /proc/cpuinfo cpu_flags REGEX "^flags" LIMIT_COUNT 1)
  string(REGEX MATCHALL "[a-z0-9_]+" cpu_flags "${cpu_flags}")
  foreach(isa sse2 avx2)
    set(lacking ${TIMETRIAL_REQUIRES_${isa}})
    list(REMOVE_ITEM lacking ${cpu_flags})
    if(NOT lacking)
      set(TIMETRIAL_ISAS ${isa})
    endif()
  endforeach()
endif()

# Sources named *_avx2.cpp and *_avx512.cpp get the flags their name says.
function(timetrial_isa_sources)
  foreach(isa sse2 avx2 avx512)
    foreach(source IN LISTS ARGN)
      if(source MATCHES "_${isa}\\.cpp$")
        set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${TIMETRIAL_FLAGS_${isa}}")
      endif()
    endforeach()
  endforeach()
endfunction()
