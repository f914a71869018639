// The runtime: functions, modules, artifacts and their executors.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/interrupt.h"
#include "base/reason_name.h"
#include "load/load_module.h"
#include "load/run.h"
#include "runtime/function_module.h"
#include "runtime/module.h"
#include "runtime/system_lib.h"
#include "gil.h"
#include "objects.h"
#include "values.h"
#include "vectorcall.h"

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

// Throws the reason why this machine cannot run the program.
nb::list refuse_run(const Elsewhere& program, nb::handle) { throw MissingError(program.reason); }

PackedFunc get_function(const runtime::Module& module, const std::string& name, bool query_imports) {
  PackedFunc function = module.GetFunction(name, query_imports);
  if (!function) throw nb::attribute_error(("the module has no function '" + name + "'").c_str());
  return function;
}

// Converts the input at `i` to a tensor.
NDArray to_input(nb::handle input, const std::vector<artifact::TensorSpec>& specs, size_t i) {
  if (std::optional<NDArray> tensor = try_to_ndarray(input)) return *std::move(tensor);
  if (i >= specs.size()) return to_ndarray(input, [&] { return fmt::format("input {}", i); });
  return to_ndarray(input, [&] { return fmt::format("input '{}'", specs[i].name); }, specs[i].dtype);
}

// Returns the level, as warnings count them, of the frame that called this package: 1 is the innermost.
Py_ssize_t level_of_caller() {
  const std::string package = nb::cast<std::string>(
      nb::module_::import_("os.path").attr("dirname")(nb::module_::import_("headrace").attr("__file__")));
  Py_ssize_t level = 1;
  for (nb::object frame = nb::module_::import_("sys").attr("_getframe")(); !frame.is_none();
       frame = frame.attr("f_back"), ++level) {
    const auto file = nb::cast<std::string>(frame.attr("f_code").attr("co_filename"));
    if (!file.starts_with(package + "/")) return level;
  }
  return level;
}

// Warns of each region that has fallen back to native code and was not warned of before, once for each executor.
void warn_fallbacks(executors::Executor& executor) {
  constexpr const char* kNumWarned = "_num_warned";
  if (executor.metrics().fallbacks == 0) return;
  const nb::object self = nb::find(executor);
  const std::vector<executors::FallbackEvent> events = executor.fallbacks();
  const size_t num_warned = nb::hasattr(self, kNumWarned) ? nb::cast<size_t>(self.attr(kNumWarned)) : 0;
  self.attr(kNumWarned) = events.size();
  for (size_t i = num_warned; i < events.size(); ++i) {
    const std::string text = fmt::format("the region {} runs natively, not by {}: {}", events[i].region,
                                         events[i].backend, events[i].message);
    if (PyErr_WarnEx(PyExc_RuntimeWarning, to_shown(text).c_str(), level_of_caller()) != 0) throw nb::python_error();
  }
}

std::vector<NDArray> run_tensors(executors::Executor& executor, const std::vector<NDArray>& tensors) {
  GilReleased released;
  const InterruptScope interruptible(&check_signals);
  return load::run(executor, tensors);
}

template <typename Sequence>
std::vector<NDArray> outputs_of(executors::Executor& executor, const Sequence& inputs) {
  const std::vector<artifact::TensorSpec>& specs = executor.inputs();
  std::vector<NDArray> tensors;
  tensors.reserve(specs.size());
  for (const nb::handle input : inputs) tensors.push_back(to_input(input, specs, tensors.size()));
  std::vector<NDArray> outputs = run_tensors(executor, tensors);
  warn_fallbacks(executor);
  return outputs;
}

nb::list run(executors::Executor& executor, const nb::sequence& inputs) {
  nb::list result;
  for (const NDArray& output : outputs_of(executor, inputs)) result.append(output);
  return result;
}

// As run. An output is written to the memory of its place, where that is not None and fits (load/run.h). With `times`,
// a list, the nanoseconds of each step are appended to it.
nb::list run_into(executors::Executor& executor, const nb::sequence& inputs, const nb::sequence& places,
                  std::optional<nb::list> times) {
  const std::vector<artifact::TensorSpec>& specs = executor.inputs();
  std::vector<NDArray> tensors;
  for (const nb::handle input : inputs) tensors.push_back(to_input(input, specs, tensors.size()));
  std::vector<std::optional<NDArray>> targets;
  for (const nb::handle place : places) targets.push_back(place.is_none() ? std::nullopt : try_to_ndarray(place));
  std::vector<NDArray> outputs;
  std::vector<uint64_t> nanoseconds(times ? executor.num_steps() : 0);
  {
    GilReleased released;
    const InterruptScope interruptible(&check_signals);
    outputs = load::run_into(executor, tensors, targets, nanoseconds);
  }
  for (const uint64_t one : nanoseconds) times->append(one);
  warn_fallbacks(executor);
  nb::list result;
  for (const NDArray& output : outputs) result.append(output);
  return result;
}

// Returns the only output, or a tuple of all outputs.
nb::object call(executors::Executor& executor, const nb::tuple& inputs) {
  const std::vector<NDArray> outputs = outputs_of(executor, inputs);
  if (outputs.size() == 1) return nb::cast(outputs[0]);
  nb::list result;
  for (const NDArray& output : outputs) result.append(output);
  return nb::tuple(result);
}

// Base of Python's CompiledModel: calls go to a function without a frame of Python's between.
struct Model {
  nb::object call;
};

// A call of a model. With arguments by name, the class's method _in_order gives all of them in order.
PyObject* call_model(PyObject* self, PyObject* args, PyObject* kwargs) {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "the model was not made: its __init__ calls super().__init__ first");
    return nullptr;
  }
  PyObject* const call = nb::inst_ptr<Model>(self)->call.ptr();
  if (kwargs == nullptr || PyDict_Size(kwargs) == 0) return call_with_one(call, args);
  PyObject* const in_order = PyObject_CallMethod(self, "_in_order", "OO", args, kwargs);
  if (in_order == nullptr) return nullptr;
  PyObject* const result = call_with_one(call, in_order);
  Py_DECREF(in_order);
  return result;
}

nb::list fallbacks_of(const executors::Executor& executor) {
  nb::list list;
  for (const executors::FallbackEvent& event : executor.fallbacks()) {
    nb::dict row;
    row["region"] = event.region;
    row["backend"] = event.backend;
    row["reason"] = static_cast<int>(event.reason);
    row["reason_name"] = std::string(reason_name(event.reason));
    row["message"] = event.message;
    row["run"] = event.run;
    list.append(row);
  }
  return list;
}

std::vector<std::pair<std::string, std::string>> steps_of(const executors::Executor& executor) {
  std::vector<std::pair<std::string, std::string>> steps;
  for (const artifact::Step& step : executor.steps()) steps.emplace_back(step.op, artifact::callee_of(step.action));
  return steps;
}

void bind_executors(nb::module_& m) {
  nb::class_<Spec>(m, "TensorSpec", "Name, dtype and shape of an input or output.")
      .def_ro("name", &Spec::name)
      .def_ro("dtype", &Spec::dtype)
      .def_prop_ro("shape", [](const Spec& spec) { return nb::tuple(nb::cast(spec.shape)); })
      .def("__repr__", [](const Spec& spec) {
        return fmt::format("{}: {} ({})", spec.name, spec.dtype, fmt::join(spec.shape, ", "));
      });
  nb::class_<executors::Executor>(
      m, "Executor", "One program of an artifact, ready to run; threads that call it take turns.", nb::dynamic_attr())
      .def_prop_ro("inputs", [](const executors::Executor& self) { return specs_of(self.inputs()); })
      .def_prop_ro("outputs", [](const executors::Executor& self) { return specs_of(self.outputs()); })
      .def_prop_ro("threads", [](const executors::Executor& self) { return self.num_threads(); })
      .def_prop_ro(
          "metrics",
          [](const executors::Executor& self) {
            nb::dict counts;
            counts["runs"] = self.metrics().runs;
            counts["failures"] = self.metrics().failures;
            counts["fallbacks"] = self.metrics().fallbacks;
            return counts;
          },
          "How many runs were started since the executor was made, how many of them failed, and how many regions run "
          "natively because their backend is missing or failed.")
      .def_prop_ro("fallbacks", &fallbacks_of, "The regions that run natively instead, as dicts.")
      .def("warn_fallbacks", &warn_fallbacks, "Warns of those that were not warned of before.")
      .def("run", &run, nb::arg("inputs"), "Tensors in, new NDArrays out.")
      .def("run_into", &run_into, nb::arg("inputs"), nb::arg("places"), nb::arg("times") = nb::none(),
           "As run; outputs whose place fits are written to its memory. The list `times` gets each step's nanoseconds.")
      .def_prop_ro("steps", &steps_of, "The steps of a run: what the model calls them, and the code that they call.")
      .def("call", &call, nb::arg("inputs"), "As run; gives the only output, or a tuple.");
  nb::class_<Elsewhere>(m, "Elsewhere", "A program in an artifact for another processor: described here, not run.")
      .def_prop_ro("inputs", [](const Elsewhere& self) { return specs_of(self.program.inputs); })
      .def_prop_ro("outputs", [](const Elsewhere& self) { return specs_of(self.program.outputs); })
      .def_ro("threads", &Elsewhere::threads)
      .def_prop_ro("fallbacks", [](const Elsewhere&) { return nb::list(); })
      .def("run", &refuse_run, nb::arg("inputs"), "Raises MissingError: why not here.")
      .def(
          "run_into",
          [](const Elsewhere& self, nb::handle inputs, nb::handle, nb::handle) { return refuse_run(self, inputs); },
          nb::arg("inputs"), nb::arg("places"), nb::arg("times") = nb::none(), "Raises MissingError: why not here.")
      .def_prop_ro("steps", [](const Elsewhere&) { return nb::list(); })
      .def("call", &refuse_run, nb::arg("inputs"), "Raises MissingError: why not here.");
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(&call_model)}, {0, nullptr}};
  nb::class_<Model>(m, "Model", nb::type_slots(slots), "What calls a function with its arguments as one tuple.")
      .def("__init__", [](Model* self, nb::object call) { new (self) Model{std::move(call)}; }, nb::arg("call"));
}

nb::bytes to_bytes(const std::string& bytes) { return nb::bytes(bytes.data(), bytes.size()); }

std::string to_chars(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

nb::bytes save_to_binary(const runtime::Module& module) {
  std::string bytes;
  {
    GilReleased released;
    bytes = module.SaveToBinary();
  }
  return to_bytes(bytes);
}

// An artifact that several executors may share.
struct OpenArtifact {
  std::shared_ptr<const load::Artifact> artifact;
};

std::shared_ptr<executors::Executor> executor_of(std::shared_ptr<const load::Artifact> artifact,
                                                 const std::string& program, int threads, std::vector<int32_t> cpus,
                                                 bool falls_back, double region_timeout, bool owns_threads) {
  std::shared_ptr<runtime::ThreadPool> pool;
  if (owns_threads && cpus.empty() && threads > 1 && threads <= runtime::kMaxWorkers)
    pool = std::make_shared<runtime::ThreadPool>(threads);
  return load::make_executor(std::move(artifact), program,
                             {.threads = threads,
                              .cpus = std::move(cpus),
                              .pool = std::move(pool),
                              .fallback = fallback_of(falls_back),
                              .region_timeout_seconds = region_timeout});
}

// Returns the backends of a program, each once, in the order of its steps; empty for a program that is not there.
std::vector<std::string> backends_of(const OpenArtifact& opened, const std::string& program) {
  const artifact::Manifest& manifest = opened.artifact->manifest();
  std::vector<std::string> names;
  const artifact::Program* found = artifact::find_program(manifest, program);
  if (found == nullptr) return names;
  for (const artifact::Step& step : found->graph.steps) {
    if (std::holds_alternative<artifact::CopyStep>(step.action)) continue;
    const artifact::Region* region = std::holds_alternative<artifact::RegionCall>(step.action)
                                         ? artifact::find_region(manifest, artifact::callee_of(step.action))
                                         : nullptr;
    const std::string name = region == nullptr ? "native" : region->backend;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

void bind_artifacts(nb::module_& m) {
  nb::class_<OpenArtifact>(m, "OpenArtifact", "An artifact that several executors may share.")
      .def("backends", &backends_of, nb::arg("program"), "The names of the backends that compute a program's steps.");
  m.def(
      "open_artifact", [](const std::string& path) { return OpenArtifact{load::open_artifact(path).value_or_throw()}; },
      nb::arg("path"), nb::call_guard<GilReleased>());
  m.def(
      "make_executor",
      [](const OpenArtifact& opened, const std::string& program, int threads, std::vector<int32_t> cpus,
         bool falls_back) {
        return executor_of(opened.artifact, program, threads, std::move(cpus), falls_back, 0, true);
      },
      nb::arg("artifact"), nb::arg("program"), nb::arg("threads"), nb::arg("cpus"), nb::arg("falls_back"),
      nb::call_guard<GilReleased>(), "An executor with threads of its own.");
}

void bind_loaders(nb::module_& m) {
  m.def("load_module", &load::load_module, nb::arg("path"), nb::arg("format"), nb::call_guard<GilReleased>(),
        "The module in a file.");
  m.def(
      "load_binary",
      [](const std::string& type_key, const nb::bytes& data) {
        const std::string bytes = to_chars(data);
        GilReleased released;
        return load::load_binary(type_key, bytes);
      },
      nb::arg("type_key"), nb::arg("data"), "The module of a kind in bytes.");
  m.def(
      "create_module",
      [](const std::string& type_key, const std::map<std::string, PackedFunc>& functions,
         const std::optional<nb::bytes>& binary) {
        return runtime::make_function_module(type_key, functions,
                                             binary ? std::optional(to_chars(*binary)) : std::nullopt);
      },
      nb::arg("type_key"), nb::arg("functions"), nb::arg("binary") = nb::none(), "A module of functions.");
  m.def("open_executor", &open_executor, nb::arg("path"), nb::arg("program") = artifact::kDefaultProgram,
        nb::arg("threads") = 0, nb::arg("cpus") = std::vector<int32_t>(), nb::arg("falls_back") = true,
        nb::arg("region_timeout") = 0.0, nb::arg("owns_threads") = false, nb::call_guard<GilReleased>());
  m.def("caller_level", &level_of_caller, "The stacklevel of a warning for who called this package.");
  m.def("system_lib", &runtime::system_lib, nb::arg("prefix"), "The functions that the process has registered.");
}

}  // namespace

std::shared_ptr<executors::Executor> open_executor(const std::string& path, const std::string& program, int threads,
                                                   std::vector<int32_t> cpus, bool falls_back, double region_timeout,
                                                   bool owns_threads) {
  return executor_of(load::open_artifact(path).value_or_throw(), program, threads, std::move(cpus), falls_back,
                     region_timeout, owns_threads);
}

void bind_runtime(nb::module_& m) {
  // headrace/_export.py adds export_library.
  nb::class_<runtime::Module>(m, "Module", nb::is_weak_referenceable(),
                              "Functions that belong together, from one code generator or loader.")
      .def_prop_ro("type_key", [](const runtime::Module& module) { return std::string(module.type_key()); })
      .def("get_function", &get_function, nb::arg("name"), nb::arg("query_imports") = false)
      .def("implements_function", &runtime::Module::ImplementsFunction, nb::arg("name"),
           nb::arg("query_imports") = false)
      .def("__getitem__",
           [](const runtime::Module& module, const std::string& name) { return get_function(module, name, true); })
      .def_prop_ro("imported_modules", &runtime::Module::imports)
      .def("get_source", &runtime::Module::GetSource, nb::arg("format") = "", nb::call_guard<GilReleased>())
      .def("import_module", &runtime::Module::Import, nb::arg("module"))
      .def("save", &runtime::Module::SaveToFile, nb::arg("path"), nb::arg("fmt") = "", nb::call_guard<GilReleased>())
      .def("save_to_binary", &save_to_binary, "The bytes that `runtime.load_binary` makes the module of again.")
      .def(
          "__eq__",
          [](const runtime::Module& a, nb::handle b) {
            return nb::isinstance<runtime::Module>(b) && a.object() == nb::inst_ptr<runtime::Module>(b)->object();
          },
          nb::arg("other").none())
      .def("__hash__",
           [](const runtime::Module& self) { return reinterpret_cast<intptr_t>(self.object().object()) >> 4; });
  bind_artifacts(m);
  bind_loaders(m);
  bind_executors(m);
}

}  // namespace headrace::python
