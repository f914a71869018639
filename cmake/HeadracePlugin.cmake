# headrace_plugin(FOLDER LEVEL n SIDE C): a room that is a shared library of its own, loaded with dlopen(RTLD_LOCAL) and
# included by no room. The only one is codegen/llvm; nothing else sees a header of LLVM or lld.
# headrace_backend_plugin(NAME libraries...): the backend src/backends/NAME as a shared library that answers
# headrace/backend_abi.h, for both sides. It sees the public headers of Headrace, and no room; it exports its entry.
#
# Plugins lie beside the core libraries. Each exports its entry and nothing else: LLVM's symbols must never meet those
# of another LLVM in the process (an OpenCL driver brings one).

option(HEADRACE_LLVM_STATIC "Link LLVM into the plugin (for wheels); off: the shared libLLVM" OFF)

function(headrace_plugin folder)
  cmake_parse_arguments(ROOM "" "LEVEL;SIDE" "" ${ARGN})
  if(NOT HEADRACE_BUILD_COMPILER)
    return()
  endif()
  # "19" does not match: to CMake 19.1 is not compatible with 19.0.
  find_package(LLVM 19.1 CONFIG REQUIRED)
  find_package(LLD CONFIG REQUIRED HINTS ${LLVM_LIBRARY_DIR}/cmake/lld)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(headrace_llvm MODULE ${sources})
  target_include_directories(headrace_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
  separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(headrace_llvm PRIVATE ${definitions})
  if(HEADRACE_LLVM_STATIC)
    llvm_map_components_to_libnames(llvm_libraries
      passes asmparser x86 aarch64 riscv irreader target targetparser lto option object debuginfodwarf)
  else()
    set(llvm_libraries LLVM)
  endif()
  target_link_libraries(headrace_llvm PRIVATE headrace headrace_rt lldELF lldCommon ${llvm_libraries})
  target_link_options(headrace_llvm PRIVATE
    -Wl,--exclude-libs,ALL -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/${folder}/exports.map)
  set_target_properties(headrace_llvm PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/exports.map)
endfunction()

function(headrace_backend_plugin name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  add_library(headrace_${name} MODULE ${sources})
  target_link_libraries(headrace_${name} PRIVATE headrace_options ${ARGN})
  target_link_options(headrace_${name} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/backend_exports.map)
  set_target_properties(headrace_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/backend_exports.map)
endfunction()
