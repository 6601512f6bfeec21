# SPDX-License-Identifier: Apache-2.0
# Helpers shared by all folders.

add_library(belay_flags INTERFACE)
target_compile_features(belay_flags INTERFACE c_std_11)
target_compile_definitions(belay_flags INTERFACE _GNU_SOURCE BLY_DEBUG=${BLY_DEBUG})
target_compile_options(belay_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C>:-std=c11>
  -Wall -Wextra -Wconversion -Wshadow -Wundef
  $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
  -fvisibility=hidden -fno-omit-frame-pointer
  $<$<BOOL:${BLY_WERROR}>:-Werror>)
target_include_directories(belay_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/src)

# belay_layer(NAME files...): one layer of the library as objects.
function(belay_layer name)
  add_library(belay_${name} OBJECT ${ARGN})
  set_target_properties(belay_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(belay_${name} PRIVATE belay_flags)
endfunction()

# belay_test(NAME [LABELS l...] [SHARED] SOURCES files...): a cmocka program that
# runs in its own process. It links the layers statically, so it sees internal
# names; with SHARED it links libascendcl.so as a user would. How long a test may
# take is said once, for all of them: in CMakePresets.json.
function(belay_test name)
  cmake_parse_arguments(A "SHARED" "" "LABELS;SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE belay_flags cmocka Threads::Threads ${A_LIBS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(A_SHARED)
    target_link_libraries(${name} PRIVATE ascendcl)
  else()
    target_link_libraries(${name} PRIVATE belay_static)
  endif()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS "${A_LABELS}")
endfunction()
