# headrace_plugin(FOLDER LEVEL n SIDE C): a room that is a shared library of its own, loaded with dlopen(RTLD_LOCAL) and
# included by no room. The only one is codegen/llvm; nothing else sees a header of LLVM or lld.
# headrace_backend_plugin(NAME libraries...): the backend src/backends/NAME as a shared library that answers
# headrace/backend_abi.h, for both sides. It sees the public headers of Headrace, and no room; it exports its entry. Its
# tests are the program backends_NAME_test, which holds the backend's objects.
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
  list(FILTER sources EXCLUDE REGEX "(_test|/static_llvm)\\.cc$")
  add_library(headrace_llvm MODULE ${sources})
  target_include_directories(headrace_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${LLD_INCLUDE_DIRS})
  separate_arguments(definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(headrace_llvm PRIVATE ${definitions})
  if(HEADRACE_LLVM_STATIC)
    headrace_link_static_llvm(headrace_llvm ${folder})
  else()
    target_link_libraries(headrace_llvm PRIVATE lldELF lldCommon LLVM)
  endif()
  headrace_link_plugin(headrace_llvm ${folder})
  # The plugin of wheels: the same objects, with LLVM inside.
  add_library(headrace_wheel_llvm MODULE EXCLUDE_FROM_ALL $<TARGET_OBJECTS:headrace_llvm>)
  headrace_link_static_llvm(headrace_wheel_llvm ${folder})
  headrace_link_plugin(headrace_wheel_llvm ${folder})
  set_target_properties(headrace_wheel_llvm PROPERTIES OUTPUT_NAME headrace_llvm
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/wheel/lib BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN)
endfunction()

function(headrace_link_plugin target folder)
  target_link_libraries(${target} PRIVATE headrace headrace_rt)
  target_link_options(${target} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/${folder}/exports.map)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/exports.map)
endfunction()

# headrace_link_static_llvm(target folder): links LLVM and lld as archives, without the targets and the optimizer that
# static_llvm.cc stands for. lld's own CMake files name the shared libLLVM, so its archives are given as files.
# --as-needed drops the libraries of the system that LLVM's files name and this code never calls (libxml2, libz3, libtinfo).
function(headrace_link_static_llvm target folder)
  set(targets X86 AArch64 RISCV)
  set(others ${LLVM_TARGETS_TO_BUILD})
  list(REMOVE_ITEM others ${targets})
  list(TRANSFORM others REPLACE "(.+)" "HEADRACE_OTHER_TARGET(\\1)")
  list(JOIN others " " others)
  set(source ${PROJECT_SOURCE_DIR}/src/${folder}/static_llvm.cc)
  set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
    COMPILE_DEFINITIONS "HEADRACE_OTHER_TARGETS=${others}")
  if(NOT HEADRACE_LLVM_STATIC OR NOT target STREQUAL headrace_wheel_llvm)  # otherwise it is among the plugin's objects
    target_sources(${target} PRIVATE ${source})
  endif()
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  set_target_properties(LLVMExtensions PROPERTIES INTERFACE_LINK_LIBRARIES LLVMSupport)  # without Polly
  llvm_map_components_to_libnames(libraries
    passes asmparser ${targets} irreader target targetparser lto option object debuginfodwarf)
  target_link_options(${target} PRIVATE -Wl,-z,defs -Wl,--as-needed -Wl,--gc-sections)
  target_link_libraries(${target} PRIVATE $<TARGET_FILE:lldELF> $<TARGET_FILE:lldCommon> ${libraries})
endfunction()

function(headrace_backend_plugin name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backends/${name}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  add_library(hr_backends_${name} OBJECT ${sources})
  target_link_libraries(hr_backends_${name} PRIVATE headrace_options)
  set_target_properties(hr_backends_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  add_library(headrace_${name} MODULE $<TARGET_OBJECTS:hr_backends_${name}>)
  target_link_libraries(headrace_${name} PRIVATE headrace_options ${ARGN})
  target_link_options(headrace_${name} PRIVATE
    -Wl,--exclude-libs,ALL -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/backend_exports.map)
  set_target_properties(headrace_${name} PROPERTIES LINKER_LANGUAGE CXX
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/backend_exports.map)
  if(tests)
    headrace_add_tests(backends_${name} "" ${tests})
    set_property(GLOBAL APPEND PROPERTY HEADRACE_TEST_LIBRARIES_backends_${name} hr_backends_${name} ${ARGN})
  endif()
endfunction()
