#include "codegen/c_module.h"
#include "driver/built_module.h"
#include "driver/explain.h"
#include "driver/plugins.h"
#include "driver/seal_library.h"
#include "functions/register_functions.h"
#include "load/all_loaders.h"
#include "pass/pass_objects.h"

namespace headrace::functions {

namespace {

// Makes the options of a build. The pass configuration is that of the current pass context, except for the level, which
// the call gives.
driver::CompileOptions options_of(const Target& target, const Array<Target>& backends, int64_t opt_level,
                                  int64_t threads) {
  driver::CompileOptions options;
  options.target = target;
  for (const Target& backend : backends) {
    options.backends.push_back(backend->kind->name);
    if (!backend->attrs.empty()) options.backend_options[backend->kind->name] = backend->attrs;
  }
  options.threads = static_cast<int32_t>(threads);
  options.passes = pass::to_context(pass::current_context());
  options.passes.opt_level = static_cast<int32_t>(opt_level);
  return options;
}

// `backends` are targets whose kinds name backends and whose options are theirs.
runtime::Module build(const IRModule& module, const Target& target, const Array<Target>& backends, int64_t opt_level,
                      int64_t threads, const Map<std::string, NDArray>& bound) {
  driver::Model model = driver::make_model(module);
  for (const auto& [name, data] : bound) model.bound.emplace(name, data);
  return driver::build_module(model, options_of(target, backends, opt_level, threads));
}

IRModule partition_by_backends(const IRModule& module, const Target& target, const Array<Target>& backends,
                               int64_t opt_level) {
  return driver::partition_module(driver::make_model(module), options_of(target, backends, opt_level, 0));
}

IRModule load_onnx_module(const std::string& path, const Map<std::string, Shape>& shapes) {
  driver::LoadOptions options;
  for (const auto& [name, shape] : shapes) options.shapes.emplace(name, shape);
  options.show_sizes = [](const driver::OpenSizes& open) { return driver::shapes_as_dict("shape", open); };
  return driver::load_model(path, options).module;
}

// The names of functions and constants may be left out.
Value make_c_module(Args args) {
  const auto names = [&](int32_t i) { return i < args.size() ? args.at<Array<std::string>>(i) : Array<std::string>(); };
  return Value(codegen::make_c_module(args.at<std::string>(0), args.at<std::string>(1), names(2), names(3)));
}

}  // namespace

void register_build_functions() {
  load::register_all_loaders();
  register_global("relay.build_module.Build", make_packed(&build));
  register_global("relay.build_module.Partition", make_packed(&partition_by_backends));
  register_global("headrace.load_backend", make_packed(&driver::load_plugin));
  register_global("runtime.module.loadfile_o",
                  make_packed([](const std::string& path, const std::string&) { return driver::load_object(path); }));
  register_global("runtime.SealLibrary", make_packed(&driver::seal_library));
  for (const char* name : {"runtime.module.csource_module_create", "runtime.CSourceModuleCreate"})
    register_global(name, PackedFunc(&make_c_module));
  register_global("relay.frontend.LoadONNX", make_packed(&load_onnx_module));
}

}  // namespace headrace::functions
