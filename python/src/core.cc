// The extension module headrace._core: conversion only.
#include "values.h"

NB_MODULE(_core, m) {
  using namespace headrace::python;
  m.doc() = "Headrace's C++ side; use it through the package headrace.";
  m.attr("__version__") = HEADRACE_VERSION;
  bind_errors(m);
  bind_values(m);
  bind_runtime(m);
  bind_compile(m);
}
