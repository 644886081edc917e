# The native tree: the same shape in the build folder (native/) and in the wheel (timetrial/core/native/).
set(TIMETRIAL_NATIVE_DIR ${CMAKE_BINARY_DIR}/native)
set(TIMETRIAL_INSTALL_DIR timetrial/core/native)

# timetrial_place(<target> <subfolder or .>)
function(timetrial_place target folder)
  set_target_properties(${target} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${TIMETRIAL_NATIVE_DIR}/${folder}
    LIBRARY_OUTPUT_DIRECTORY ${TIMETRIAL_NATIVE_DIR}/${folder})
  install(TARGETS ${target} RUNTIME DESTINATION ${TIMETRIAL_INSTALL_DIR}/${folder}
                            LIBRARY DESTINATION ${TIMETRIAL_INSTALL_DIR}/${folder})
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
