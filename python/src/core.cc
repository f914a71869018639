// The extension module headrace._core: conversion only.
#include "functions/register_functions.h"
#include "gil.h"
#include "objects.h"

NB_MODULE(_core, m) {
  using namespace headrace::python;
  m.doc() = "Headrace's C++ side; use it through the package headrace.";
  // Classes, registered functions and exceptions live as long as the process.
  nb::set_leak_warnings(false);
  m.attr("__version__") = HEADRACE_VERSION;
  bind_errors(m);
  bind_objects(m);
  m.def("register_all", &headrace::functions::register_functions);
  bind_values(m);
  bind_functions(m);
  bind_runtime(m);
  bind_compile(m);
  bind_onnx_file(m);
  bind_backends(m);
#if HEADRACE_USE_PIPELINE_EXECUTOR
  bind_pipeline(m);
#endif
  wait_at_exit();
}
