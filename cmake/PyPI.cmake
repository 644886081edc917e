# Build dependencies come from PyPI, so that g++ is all a machine must bring. pip puts them into the
# environment of the interpreter that builds (an isolated one under `pip install .`).

# timetrial_pypi_file(<distribution> <path suffix> <variable>): the folder that holds <path suffix>.
function(timetrial_pypi_file distribution suffix variable)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c
      "import importlib.metadata as m, os, sys
name, suffix = sys.argv[1:]
try:
    files = m.distribution(name).files or []
except m.PackageNotFoundError:
    sys.exit(1)
found = [os.path.realpath(f.locate()) for f in files if str(f).endswith('/' + suffix)]
print(found[0][:-len(suffix) - 1] if found else '', end='')" ${distribution} ${suffix}
    OUTPUT_VARIABLE folder RESULT_VARIABLE result)
  if(result OR NOT folder)
    message(FATAL_ERROR "${suffix} not found: the Python package '${distribution}' is missing from ${Python_EXECUTABLE}. "
                        "Install it there: ${Python_EXECUTABLE} -m pip install ${distribution}")
  endif()
  set(${variable} ${folder} PARENT_SCOPE)
endfunction()

timetrial_pypi_file(nlohmann-json nlohmann/json.hpp nlohmann_json_folder)
add_library(nlohmann_json INTERFACE)
target_include_directories(nlohmann_json SYSTEM INTERFACE ${nlohmann_json_folder})

timetrial_pypi_file(cmeel-eigen Eigen/Core eigen_folder)
add_library(eigen_headers INTERFACE)
target_include_directories(eigen_headers SYSTEM INTERFACE ${eigen_folder})

# The headers and the library are two packages; both lie outside site-packages, under the environment's prefix.
timetrial_pypi_file(onednn-devel-cpu-gomp oneapi/dnnl/dnnl.hpp onednn_headers)
timetrial_pypi_file(onednn-cpu-gomp libdnnl.so.3 onednn_folder)
add_library(onednn_library INTERFACE)
target_include_directories(onednn_library SYSTEM INTERFACE ${onednn_headers})
target_link_libraries(onednn_library INTERFACE ${onednn_folder}/libdnnl.so.3 gomp)

timetrial_pypi_file(pybind11 pybind11Config.cmake pybind11_DIR)
find_package(pybind11 CONFIG REQUIRED)

if(TIMETRIAL_TESTS)
  timetrial_pypi_file(ros-gtest-vendor src/gtest_vendor/src/gtest-all.cc gtest_root)
  set(gtest_folder ${gtest_root}/src/gtest_vendor)
  add_library(gtest_with_main STATIC ${gtest_folder}/src/gtest-all.cc ${gtest_folder}/src/gtest_main.cc)
  target_include_directories(gtest_with_main SYSTEM PUBLIC ${gtest_folder}/include PRIVATE ${gtest_folder})
  target_compile_options(gtest_with_main PRIVATE -O0)
  target_link_libraries(gtest_with_main PUBLIC Threads::Threads)
endif()
