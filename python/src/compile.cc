// The compiler: model files to artifacts and executors.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "base/interrupt.h"
#include "driver/check_options.h"
#include "driver/compile.h"
#include "driver/split_model.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/placing.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "load/run.h"
#include "gil.h"
#include "values.h"

namespace headrace::python {

namespace {

using Shapes = std::map<std::string, std::vector<int64_t>>;
using Dims = std::map<std::string, int64_t>;
using Compiled = std::variant<std::shared_ptr<executors::Executor>, Elsewhere>;

driver::LoadOptions load_options(const Shapes& shapes, const Dims& dims, const nb::dict& bound,
                                 const std::string& weights) {
  driver::LoadOptions options{
      .shapes = shapes, .dims = dims, .weights = weights, .show_sizes = &driver::sizes_as_arguments};
  for (const auto& [key, tensor] : bound) {
    const auto name = nb::cast<std::string>(key);
    options.bound.emplace(name, to_ndarray(tensor, [&] { return fmt::format("bound input '{}'", name); }));
  }
  return options;
}

// `target` may be None.
driver::CompileOptions compile_options(nb::handle target, const std::string& cpu, const std::string& features,
                                       int opt_level, int jobs, int threads,
                                       const std::vector<std::string>& disabled_passes,
                                       const std::vector<std::string>& backends = {},
                                       const nb::dict& backend_options = {}, const std::string& plan = "",
                                       const std::string& placement = "order", const std::string& costs = "") {
  driver::CompileOptions options;
  options.backends = backends;
  options.placement = driver::read_placement("placement", placement);
  options.costs = costs;
  options.plan = plan;
  driver::read_plan_file(options);
  for (const auto& [name, given] : backend_options) {
    Map<std::string, Value>& own = options.backend_options[nb::cast<std::string>(name)];
    for (const auto& [key, value] : nb::cast<nb::dict>(given)) own.set(nb::cast<std::string>(key), to_value(value));
  }
  if (!target.is_none() && !(cpu.empty() && features.empty()))
    throw UserError("target and its parts, cpu and features, are given: give one of the two");
  options.target = target.is_none() ? driver::llvm_target(cpu, features) : to_target(to_value(target));
  options.passes.opt_level = opt_level;
  options.jobs = jobs;
  options.threads = threads;
  options.passes.disabled_pass = disabled_passes;
  return options;
}

// Code for another processor is written all the same. What comes back runs from the file.
Compiled compile_and_open(driver::Model model, const std::string& path, const driver::CompileOptions& options,
                          bool falls_back) {
  driver::check_no_input(path, model.files, "the model");
  if (driver::module_format(path) != driver::ModuleFormat::kShared)
    throw_user_error(
        "cannot write '{}': what compile returns runs from the file that it writes, which must be an artifact; name "
        "one "
        "that ends in .so, or write that format with relay.build and export_library",
        path);
  const driver::CompileReport report = driver::compile_to_file(std::move(model), path, options);
  const artifact::Program& program = *artifact::find_program(report.manifest, artifact::kDefaultProgram);
  if (const std::optional<Refusal> refusal = runtime::cpu_refusal(program, path))
    return Elsewhere{program, options.threads, refusal->message};
  return open_executor(path, artifact::kDefaultProgram, options.threads, {}, falls_back);
}

nb::list shape_of(const driver::ModelPort& port) {
  nb::list dims;
  for (const driver::ModelDim& dim : port.shape) {
    if (dim.value >= 0) {
      dims.append(dim.value);
    } else if (dim.symbol.empty()) {
      dims.append(nb::none());
    } else {
      dims.append(dim.symbol);
    }
  }
  return dims;
}

void bind_ports(nb::module_& m) {
  nb::class_<driver::ModelPort>(m, "ModelPort", "An input or output as a model file declares it.")
      .def_ro("name", &driver::ModelPort::name)
      .def_ro("dtype", &driver::ModelPort::dtype)
      .def_prop_ro("shape", &shape_of);
  m.def(
      "read_ports",
      [](const std::string& path, const std::string& weights) {
        const driver::ModelPorts ports = driver::read_ports(path, weights);
        return std::pair(ports.inputs, ports.outputs);
      },
      nb::arg("path"), nb::arg("weights") = "", "The inputs and the outputs that a model file declares.");
  m.def(
      "is_relay_file",
      [](const std::string& path) { return driver::find_model_format(path) == driver::ModelFormat::relay; },
      nb::arg("path"),
      "Whether a model file is Relay text, by its name, or by its content where the name does not tell.");
  m.def("model_files", &driver::model_files, nb::arg("path"),
        "The file of a model, and those with its data beside it.");
}

void bind_split(nb::module_& m) {
  m.def(
      "split_model",
      [](const nb::object& program, const std::string& output, int stages, int threads,
         const std::vector<std::vector<int32_t>>& cpus, const std::vector<std::vector<std::string>>& backends,
         const std::vector<std::string>& devices, const std::vector<int64_t>& memory, int replicas, bool in_processes,
         const Shapes& shapes, const Dims& dims, const nb::dict& bound, const std::string& weights,
         const nb::object& target, int opt_level, int replans, int max_inflight) {
        const driver::LoadOptions load = load_options(shapes, dims, bound, weights);
        const driver::CompileOptions options = compile_options(target, "", "", opt_level, 0, threads, {});
        using artifact::PipelineIsolation;
        driver::SplitModelOptions split_options{
            .stages = stages,
            .threads = threads,
            .cpus = cpus,
            .backends = backends,
            .memory_bytes = memory,
            .replicas = replicas,
            .isolation = in_processes ? PipelineIsolation::process : PipelineIsolation::thread,
            .replans = replans,
            .max_inflight = max_inflight};
        for (const std::string& device : devices) {
          split_options.devices.emplace_back();
          if (!device.empty()) split_options.devices.back() = headrace::devices::parse_simulated_device(device);
        }
        const std::string path = nb::isinstance<nb::str>(program) ? nb::cast<std::string>(program) : "";
        const IRModule module = path.empty() ? to_value(program).as<IRModule>() : IRModule();
        driver::SplitFile file;
        {
          GilReleased released;
          const InterruptScope interruptible(&check_signals);
          const driver::Model model = path.empty() ? driver::make_model(module) : driver::load_model(path, load);
          file = driver::split_to_file(model, output, options, split_options);
        }
        return from_value(Value(driver::report_of(file)));
      },
      nb::arg("program"), nb::arg("output"), nb::arg("stages"), nb::arg("threads"), nb::arg("cpus"),
      nb::arg("backends"), nb::arg("devices"), nb::arg("memory"), nb::arg("replicas"), nb::arg("in_processes"),
      nb::arg("shapes"), nb::arg("dims"), nb::arg("bound"), nb::arg("weights"), nb::arg("target").none(),
      nb::arg("opt_level"), nb::arg("replans"), nb::arg("max_inflight"));
}

}  // namespace

void bind_compile(nb::module_& m) {
  bind_split(m);
  m.def(
      "compile",
      [](const nb::object& program, const Shapes& shapes, const Dims& dims, const nb::dict& bound,
         const std::string& weights, const nb::object& target, const std::string& cpu, const std::string& features,
         int opt_level, int jobs, int threads, const std::vector<std::string>& disabled_passes,
         const std::vector<std::string>& backends, const nb::dict& backend_options, const std::string& plan,
         const std::string& placement, const std::string& costs, const std::optional<std::string>& output,
         bool falls_back) -> Compiled {
        driver::LoadOptions load = load_options(shapes, dims, bound, weights);
        const driver::CompileOptions options =
            compile_options(target, cpu, features, opt_level, jobs, threads, disabled_passes, backends, backend_options,
                            plan, placement, costs);
        const bool is_file = nb::isinstance<nb::str>(program);
        const std::string path = is_file ? nb::cast<std::string>(program) : "the module";
        IRModule module = is_file ? IRModule() : to_value(program).as<IRModule>();
        GilReleased released;
        const InterruptScope interruptible(&check_signals);
        load.backends = driver::possible_backends(options);
        driver::Model model = is_file ? driver::load_model(path, load) : driver::make_model(std::move(module));
        if (output) return compile_and_open(std::move(model), *output, options, falls_back);
        return load::make_executor(driver::open_compiled(driver::compile_to_memory(std::move(model), options), path),
                                   artifact::kDefaultProgram,
                                   {.threads = options.threads, .fallback = fallback_of(falls_back)});
      },
      nb::arg("program"), nb::arg("shapes") = Shapes(), nb::arg("dims") = Dims(), nb::arg("bound") = nb::dict(),
      nb::arg("weights") = "", nb::arg("target") = nb::none(), nb::arg("cpu") = "", nb::arg("features") = "",
      nb::arg("opt_level") = 3, nb::arg("jobs") = 0, nb::arg("threads") = 0,
      nb::arg("disabled_passes") = std::vector<std::string>(), nb::arg("backends") = std::vector<std::string>(),
      nb::arg("backend_options") = nb::dict(), nb::arg("plan") = "", nb::arg("placement") = "order",
      nb::arg("costs") = "", nb::arg("output") = nb::none(), nb::arg("falls_back") = true);
  m.def(
      "check_options",
      [](const nb::object& target, const std::string& cpu, const std::string& features, int opt_level, int jobs,
         int threads, const std::vector<std::string>& disabled_passes, const std::vector<std::string>& backends,
         const nb::dict& backend_options, const std::string& placement, const std::string& costs) {
        driver::register_all();
        const driver::CompileOptions options =
            compile_options(target, cpu, features, opt_level, jobs, threads, disabled_passes, backends, backend_options,
                            "", placement, costs);
        driver::check_options(options);
        driver::check_backend_options(options, driver::possible_backends(options), {});
        driver::choose_target(codegen::NativeCompiler::load(), options.target);
      },
      nb::arg("target").none(), nb::arg("cpu"), nb::arg("features"), nb::arg("opt_level"), nb::arg("jobs"),
      nb::arg("threads"), nb::arg("disabled_passes"), nb::arg("backends"), nb::arg("backend_options"),
      nb::arg("placement"), nb::arg("costs"), "Raises UserError for an option that compile would refuse.");
  bind_ports(m);
}

}  // namespace headrace::python
