// The extension module headrace._runtime: what headrace._core has of the runtime, linked without the compiler. The
// package takes it where _core is not installed (headrace/_native.py).
#include "load/all_loaders.h"

#include "gil.h"
#include "object/array.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "objects.h"

namespace headrace::python {

// Registers the loaders, and the types that Python's containers are made of.
static void register_runtime() {
  load::register_all_loaders();
  type_of<ArrayObj>();
  type_of<MapObj>();
  type_of<ShapeObj>();
  type_of<ADTObj>();
}

}  // namespace headrace::python

NB_MODULE(_runtime, m) {
  using namespace headrace::python;
  m.doc() = "Headrace's runtime; use it through the package headrace.";
  nb::set_leak_warnings(false);  // as in core.cc
  m.attr("__version__") = HEADRACE_VERSION;
  bind_errors(m);
  bind_objects(m);
  bind_values(m);
  bind_functions(m);
  bind_runtime(m);
  bind_pipeline(m);
  m.def("register_all", &register_runtime);
  wait_at_exit();
}
