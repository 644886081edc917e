# The native tree: the same shape in the build folder (native/) and in the wheel (timetrial/core/native/).
set(TIMETRIAL_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
set(TIMETRIAL_INSTALL_DIR timetrial/core/native)

# The public headers travel along: `-I $(python -c "import timetrial.core as c; print(c.include_dir())")`.
# A link in the build tree: a copy would be stale after the next edit.
file(MAKE_DIRECTORY ${TIMETRIAL_NATIVE_DIR}/include ${TIMETRIAL_NATIVE_DIR}/sources ${TIMETRIAL_NATIVE_DIR}/backends)
if(NOT IS_SYMLINK ${TIMETRIAL_NATIVE_DIR}/include/timetrial)
  file(REMOVE_RECURSE ${TIMETRIAL_NATIVE_DIR}/include/timetrial)  # a copy, of an older build
endif()
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/cpp/include/timetrial ${TIMETRIAL_NATIVE_DIR}/include/timetrial SYMBOLIC)
install(DIRECTORY cpp/include/timetrial DESTINATION ${TIMETRIAL_INSTALL_DIR}/include)

# timetrial_place(<target> <subfolder or .>)
function(timetrial_place target folder)
  cmake_path(SET built NORMALIZE ${TIMETRIAL_NATIVE_DIR}/${folder})
  cmake_path(SET installed NORMALIZE ${TIMETRIAL_INSTALL_DIR}/${folder})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${built} LIBRARY_OUTPUT_DIRECTORY ${built})
  install(TARGETS ${target} RUNTIME DESTINATION ${installed} LIBRARY DESTINATION ${installed})
endfunction()

# timetrial_add_backend(<name> SOURCES <sources> [ISA <isa>] [LIBRARIES <targets>] [RANK <n>])
# makes backends/<name>[-<isa>].so and the manifest beside it by which the parent chooses a variant.
function(timetrial_add_backend name)
  cmake_parse_arguments(arg "" "ISA" "SOURCES;LIBRARIES" ${ARGN})
  set(file ${name})
  set(rank 0)
  set(requires "")
  if(arg_ISA)
    set(file ${name}-${arg_ISA})
    set(rank ${TIMETRIAL_RANK_${arg_ISA}})
    list(TRANSFORM TIMETRIAL_REQUIRES_${arg_ISA} REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE requires)
    list(JOIN requires ", " requires)
  endif()
  set(target backend-${file})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE timetrial_compile ${arg_LIBRARIES})
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE -O1)  # arithmetic; the rest compiles in half the time at -O0, and is fast
  endif()
  if(arg_ISA)
    target_compile_options(${target} PRIVATE ${TIMETRIAL_FLAGS_${arg_ISA}})
    target_compile_definitions(${target} PRIVATE TIMETRIAL_ISA="${arg_ISA}")
  endif()
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${file})
  timetrial_place(${target} backends)
  set(manifest ${TIMETRIAL_NATIVE_DIR}/backends/${file}.json)
  file(CONFIGURE OUTPUT ${manifest} CONTENT
    "{\"backend\": \"${name}\", \"isa\": \"${arg_ISA}\", \"requires\": [${requires}], \"library\": \"${file}.so\", \"rank\": ${rank}}\n")
  install(FILES ${manifest} DESTINATION ${TIMETRIAL_INSTALL_DIR}/backends)
endfunction()

# timetrial_ship_sources(<name>): the sources of a backend travel along, to be built on the user's machine.
function(timetrial_ship_sources name)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/cpp/backends/${name} ${TIMETRIAL_NATIVE_DIR}/sources/${name} SYMBOLIC)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/cpp/backends/${name} DESTINATION ${TIMETRIAL_INSTALL_DIR}/sources
          FILES_MATCHING PATTERN "*.cpp" PATTERN "*.h")
endfunction()

# timetrial_add_lazy_backend(<name> [RECIPE <recipe>] [NEEDS <library>])
# Nothing is compiled now: the manifest names the recipe of timetrial.building, by default called as the backend.
# It is the variant to take where the chosen library is <library> ("libdnnl.so.2"); without NEEDS, always.
function(timetrial_add_lazy_backend name)
  cmake_parse_arguments(arg "" "RECIPE;NEEDS" "" ${ARGN})
  set(recipe ${name})
  if(arg_RECIPE)
    set(recipe ${arg_RECIPE})
  endif()
  set(rank 0)
  if(arg_NEEDS)
    set(rank 1)  # before the variant that takes any library
  endif()
  timetrial_ship_sources(${name})
  set(manifest ${TIMETRIAL_NATIVE_DIR}/backends/${recipe}.json)
  file(CONFIGURE OUTPUT ${manifest} CONTENT
    "{\"backend\": \"${name}\", \"isa\": \"\", \"requires\": [], \"rank\": ${rank}, \"recipe\": \"${recipe}\", \"needs\": \"${arg_NEEDS}\"}\n")
  install(FILES ${manifest} DESTINATION ${TIMETRIAL_INSTALL_DIR}/backends)
endfunction()
