# SPDX-License-Identifier: Apache-2.0
# What libascendcl.so and libbelay.so need from the AscendCL tables, made in the
# build folder whenever a table changes:
#   BLYI_ACL_STUBS    assembly source of libascendcl.so
#   BLYI_ACL_EXPORTS  version script of libbelay.so's private node; the linker takes
#                     it beside the script of the public API
# A library of assembly alone needs LINKER_LANGUAGE C: CMake links nothing for ASM.
set(BLYI_ACL_STUBS ${PROJECT_BINARY_DIR}/src/face/acl/ascendcl_stubs.S)
set(BLYI_ACL_EXPORTS ${PROJECT_BINARY_DIR}/src/face/acl/acl_exports.map)
set(BLYI_ACL_GEN ${PROJECT_SOURCE_DIR}/scripts/gen_acl.py)
file(GLOB BLYI_ACL_SPEC CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/face/acl/spec/*)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_custom_command(OUTPUT ${BLYI_ACL_STUBS} ${BLYI_ACL_EXPORTS}
  COMMAND ${Python3_EXECUTABLE} ${BLYI_ACL_GEN} --stubs ${BLYI_ACL_STUBS}
  COMMAND ${Python3_EXECUTABLE} ${BLYI_ACL_GEN} --exports ${BLYI_ACL_EXPORTS}
  DEPENDS ${BLYI_ACL_GEN} ${BLYI_ACL_SPEC}
  VERBATIM)
add_custom_target(blyi_acl_generated DEPENDS ${BLYI_ACL_STUBS} ${BLYI_ACL_EXPORTS})
