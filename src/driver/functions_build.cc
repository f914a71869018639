#include "driver/built_module.h"
#include "driver/functions.h"
#include "driver/seal_library.h"
#include "load/all_loaders.h"
#include "pass/pass_objects.h"

namespace headrace::driver {

namespace {

// Makes the options of a build. The pass configuration is that of the current pass context, except for the level, which
// the call gives.
CompileOptions options_of(const Target& target, int64_t opt_level, int64_t threads) {
  CompileOptions options;
  options.target = target;
  options.threads = static_cast<int32_t>(threads);
  options.passes = pass::to_context(pass::current_context());
  options.passes.opt_level = static_cast<int32_t>(opt_level);
  return options;
}

runtime::Module build(const IRModule& module, const Target& target, int64_t opt_level, int64_t threads,
                      const Map<std::string, NDArray>& bound) {
  Model model = make_model(module);
  for (const auto& [name, data] : bound) model.bound.emplace(name, data);
  return build_module(model, options_of(target, opt_level, threads));
}

IRModule load_onnx_module(const std::string& path, const Map<std::string, Shape>& shapes) {
  LoadOptions options;
  for (const auto& [name, shape] : shapes) options.shapes.emplace(name, shape);
  options.show_shapes = [](const std::vector<NamedShape>& open) { return shapes_as_dict("shape", open); };
  return load_model(path, options).module;
}

}  // namespace

void register_build_functions() {
  load::register_all_loaders();
  register_global("relay.build_module.Build", make_packed(&build));
  register_global("runtime.module.loadfile_o",
                  make_packed([](const std::string& path, const std::string&) { return load_object(path); }));
  register_global("runtime.SealLibrary", make_packed(&seal_library));
  register_global("relay.frontend.LoadONNX", make_packed(&load_onnx_module));
}

}  // namespace headrace::driver
