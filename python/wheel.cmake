# The native files of the wheels that ./dev wheel makes (tools/wheel.py, docs/packages.md), in ${CMAKE_BINARY_DIR}/wheel:
# extension modules for the stable ABI of Python 3.10 in nanobind's split mode, so that one file serves every Python from
# 3.10 on, and the plugin with LLVM within (cmake/HeadracePlugin.cmake). A wheel's libraries are in its folder lib.
function(headrace_wheel_module target name)
  nanobind_add_module(${target} NOMINSIZE BACKEND_MODULE nanobind_backend ${ARGN})
  headrace_python_options(${target})
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON OUTPUT_NAME ${name} UNITY_BUILD_BATCH_SIZE 6
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/wheel BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH $ORIGIN/lib)
endfunction()

headrace_wheel_module(headrace_wheel_core _core ${core_sources})
target_link_libraries(headrace_wheel_core PRIVATE headrace)

set(runtime_sources errors functions gil objects pipeline pipeline_processes runtime runtime_only values)
list(TRANSFORM runtime_sources REPLACE "(.+)" "src/\\1.cc")
# A domain of its own: tools that import every module of the package load it beside _core, which has types of these names.
headrace_wheel_module(headrace_wheel_runtime _runtime NB_DOMAIN headrace_runtime ${runtime_sources})
target_compile_definitions(headrace_wheel_runtime PRIVATE HEADRACE_PYTHON_RUNTIME_ALONE=1)

add_custom_target(headrace_wheel DEPENDS headrace_wheel_core headrace_wheel_runtime headrace_wheel_llvm
  headrace_program headrace-opt headrace-stage-host headrace_python_stubs)
if(TARGET headrace_onednn)
  add_dependencies(headrace_wheel headrace_onednn)
endif()
