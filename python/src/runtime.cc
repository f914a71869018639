// The runtime: functions, modules, artifacts and their executors.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "load/artifact_module.h"
#include "load/run.h"
#include "runtime/module.h"
#include "values.h"

namespace headrace::python {

namespace {

struct Spec {
  std::string name, dtype;
  std::vector<int64_t> shape;
};

std::vector<Spec> specs_of(const std::vector<artifact::TensorSpec>& specs) {
  std::vector<Spec> result;
  for (const auto& spec : specs) result.push_back({spec.name, spec.dtype.to_string(), spec.shape});
  return result;
}

// What is asked of an executor, of a program that this machine cannot run.
nb::list refuse_run(const Elsewhere& program, nb::handle) { throw MissingError(program.reason); }

PackedFunc get_function(const runtime::Module& module, const std::string& name, bool query_imports) {
  PackedFunc function = module.GetFunction(name, query_imports);
  if (!function) throw nb::attribute_error(("the module has no function '" + name + "'").c_str());
  return function;
}

nb::list run(load::Executor& executor, const nb::sequence& inputs) {
  const std::vector<artifact::TensorSpec>& specs = executor.runner().program().inputs;
  std::vector<NDArray> tensors;
  for (const nb::handle input : inputs) {
    const size_t i = tensors.size();
    tensors.push_back(
        to_ndarray(input, i < specs.size() ? fmt::format("input '{}'", specs[i].name) : fmt::format("input {}", i)));
  }
  std::vector<NDArray> outputs;
  {
    nb::gil_scoped_release released;
    outputs = load::run(executor, tensors);
  }
  nb::list result;
  for (const NDArray& output : outputs) result.append(output);
  return result;
}

void bind_executors(nb::module_& m) {
  nb::class_<Spec>(m, "TensorSpec", "Name, dtype and shape of an input or output.")
      .def_ro("name", &Spec::name)
      .def_ro("dtype", &Spec::dtype)
      .def_prop_ro("shape", [](const Spec& spec) { return nb::tuple(nb::cast(spec.shape)); })
      .def("__repr__", [](const Spec& spec) {
        return fmt::format("{}: {} ({})", spec.name, spec.dtype, fmt::join(spec.shape, ", "));
      });
  nb::class_<load::Executor>(m, "Executor",
                             "One program of an artifact, ready to run; threads that call it take turns.")
      .def_prop_ro("inputs", [](const load::Executor& self) { return specs_of(self.runner().program().inputs); })
      .def_prop_ro("outputs", [](const load::Executor& self) { return specs_of(self.runner().program().outputs); })
      .def_prop_ro("threads", [](const load::Executor& self) { return self.runner().num_threads(); })
      .def("run", &run, nb::arg("inputs"), "Tensors in, new NDArrays out.");
  nb::class_<Elsewhere>(m, "Elsewhere", "A program in an artifact for another processor: described here, not run.")
      .def_prop_ro("inputs", [](const Elsewhere& self) { return specs_of(self.program.inputs); })
      .def_prop_ro("outputs", [](const Elsewhere& self) { return specs_of(self.program.outputs); })
      .def_ro("threads", &Elsewhere::threads)
      .def("run", &refuse_run, nb::arg("inputs"), "Raises MissingError: why not here.");
}

}  // namespace

void bind_runtime(nb::module_& m) {
  nb::class_<runtime::Module>(m, "Module", nb::is_weak_referenceable(),
                              "Functions that belong together, from one code generator or loader.")
      .def_prop_ro("type_key", [](const runtime::Module& module) { return std::string(module.type_key()); })
      .def("get_function", &get_function, nb::arg("name"), nb::arg("query_imports") = false)
      .def("implements_function", &runtime::Module::ImplementsFunction, nb::arg("name"),
           nb::arg("query_imports") = false)
      .def("__getitem__",
           [](const runtime::Module& module, const std::string& name) { return get_function(module, name, true); })
      .def_prop_ro("imported_modules", &runtime::Module::imports)
      .def("get_source", &runtime::Module::GetSource, nb::arg("format") = "")
      .def("import_module", &runtime::Module::Import, nb::arg("module"))
      .def("save", &runtime::Module::SaveToFile, nb::arg("path"), nb::arg("fmt") = "",
           nb::call_guard<nb::gil_scoped_release>())
      .def(
          "__eq__",
          [](const runtime::Module& a, nb::handle b) {
            return nb::isinstance<runtime::Module>(b) && a.object() == nb::inst_ptr<runtime::Module>(b)->object();
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const runtime::Module& self) { return reinterpret_cast<intptr_t>(self.object().object()) >> 4; });
  m.def("load_module", &load::load_artifact_module, nb::arg("path"), nb::call_guard<nb::gil_scoped_release>(),
        "Opens an artifact. lib[\"default\"](headrace.cpu()) makes a graph executor.");
  bind_executors(m);
}

}  // namespace headrace::python
