#include "driver/canonical.h"

#include <algorithm>

#include "driver/check_devices.h"
#include "driver/check_size.h"
#include "partition/extract.h"
#include "pass/instruments.h"
#include "passes/forms/bound_outputs.h"
#include "passes/pipeline.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/unique_binders.h"
#include "relay/verify.h"
#include "relay/visit.h"
#include "runtime/thread_pool.h"

namespace headrace::driver {

namespace {

// Rejects models that set attributes reserved for the compiler.
void check_attributes(const IRModule& module) {
  const auto* main = module->lookup("main").as<relay::FunctionNode>();
  if (main != nullptr && main->attrs.contains(passes::kBoundedOutputs))
    throw_at(main->span, "compile",
             fmt::format("@main has the attribute {}, which the compiler makes; compile the program without it",
                         passes::kBoundedOutputs));
}

// Rejects functions that the program itself marks as one kernel: those whose sizes only their calls tell, and those
// that say where a kernel writes its result.
void check_kernels(const IRModule& module) {
  const auto check = [](const Expr& expr) {
    const auto* function = expr.as<relay::FunctionNode>();
    if (function == nullptr || !relay::is_primitive(*function)) return;
    if (function->attrs.contains(relay::kResultStrides))
      throw_at(function->span, "compile",
               fmt::format("the function marked Primitive has the attribute {}, which the compiler makes; compile the "
                           "program without it",
                           relay::kResultStrides));
    for (const relay::Var& param : function->params) {
      const std::vector<Type> leaves = leaves_of(param->checked_type());
      const bool is_known = std::all_of(leaves.begin(), leaves.end(), [](const Type& leaf) {
        const auto* tensor = leaf.as<TensorTypeNode>();
        return tensor == nullptr || as_shape(tensor->shape).has_value();
      });
      if (!is_known)
        throw_at(
            function->span, "compile",
            fmt::format("the function marked Primitive has a parameter %{} of a size without a number; give it the "
                        "sizes of its calls",
                        param->name_hint));
    }
  };
  for (const auto& [name, function] : module->functions()) relay::post_order(function, check);
}

}  // namespace

pass::PassContext make_context(const CompileOptions& options, ModuleCheck verify) {
  pass::PassContext context = options.passes;
  context.infer_type = {};
  context.threads = options.jobs > 0 ? options.jobs : runtime::num_processors();
  if (options.verify_each) context.instruments.push_back(pass::make_verify_instrument(std::move(verify)));
  return context;
}

pass::PassContext make_relay_context(const CompileOptions& options, pass::NoteSink note) {
  pass::PassContext context = make_context(options, [](const IRModule& module) { relay::verify(module); });
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  context.note = pass::each_once(std::move(note));  // a pass that runs twice leaves the same undone twice
  return context;
}

IRModule run_canonical_passes(IRModule module, const pass::PassContext& context) {
  IRModule typed = relay::infer_type(relay::unique_binders(module));
  module = {};
  check_attributes(typed);
  check_devices(typed);
  check_tensor_sizes(typed);
  check_kernels(typed);
  typed = partition::partition_graph(typed).module;
  return pass::run_passes(passes::canonical(), std::move(typed), context);
}

}  // namespace headrace::driver
