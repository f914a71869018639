// Helpers of the tests of this room: programs, passes by name, compilers that support some ops.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/all_passes.h"
#include "driver/register_all.h"
#include "kit/errors.h"
#include "kit/golden.h"
#include "partition/annotate.h"
#include "partition/support.h"
#include "passes/tests/pass_testing.h"
#include "relay/infer/result_types.h"

namespace headrace::partition {

// Makes the compilers of the tests support some ops: red most of them, blue a few, green only ops that red has not.
inline void register_test_compilers() {
  driver::register_all();
  static const bool once = [] {
    const auto always = [](const relay::CallNode&) { return true; };
    const auto set = [&](const char* compiler, std::initializer_list<const char*> ops) {
      for (const char* op : ops) set_target_check(get_op(op), compiler, always);
    };
    set("red", {"exp", "add", "nn.relu", "abs", "multiply", "concatenate", "split", "nn.dense", "less"});
    set("blue", {"tanh", "exp", "subtract"});
    set("green", {"tanh", "negative"});
    return true;
  }();
  static_cast<void>(once);
}

// Reads a program as the pass InferType leaves it, with the types of results.
inline IRModule read_program(const std::string& text) {
  register_test_compilers();
  const IRModule module = relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + text, "test.relay"));
  return relay::infer_type(relay::with_result_types(module));
}

// Runs a comma-separated list of passes, each of which is verified.
inline IRModule run_list(const std::string& passes, const IRModule& module,
                         const Map<std::string, Value>& config = {}) {
  pass::PassContext context = passes::typed_context();
  context.config = config;
  return pass::run_passes(driver::parse_pass_list(passes).passes, module, context);
}

inline Map<std::string, Value> targets(const std::string& names) {
  return {{"relay.AnnotateTarget.targets", Value(names)}};
}

// Annotates for red, merges and partitions.
inline IRModule partitioned(const IRModule& module, const std::string& names = "red") {
  return run_list("AnnotateTarget,MergeCompilerRegions,PartitionGraph", module, targets(names));
}

// Returns the functions of the module that are marked Compiler, in its order.
inline std::vector<relay::Function> regions_of(const IRModule& module) {
  std::vector<relay::Function> regions;
  for (const auto& [var, function] : module->functions()) {
    const auto relay_function = function.cast<relay::FunctionNode>();
    if (relay_function && relay_function->attrs.contains("Compiler")) regions.push_back(relay_function);
  }
  return regions;
}

inline int count_annotations(const IRModule& module) {
  int count = 0;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      const bool is_op = call != nullptr && call->as_op() != nullptr;
      count += is_op && call->as_op()->name.starts_with("annotation.compiler_") ? 1 : 0;
    });
  }
  return count;
}

// Values for the parameters of @main, which are tensors of known shapes: float32 ramps, truths for bool.
inline std::vector<NDArray> inputs_of(const IRModule& module) {
  std::vector<NDArray> inputs;
  for (const relay::Var& param : passes::main_of(module).params) {
    const auto* type = param->checked_type().as<TensorTypeNode>();
    if (type->dtype.is_bool()) {
      inputs.push_back(NDArray::from_vector<uint8_t>({}, DataType::bool_(), {uint8_t{1}}));
    } else {
      inputs.push_back(passes::ramp(type->concrete_shape(), 0.25f * static_cast<float>(inputs.size()) - 0.75f));
    }
  }
  return inputs;
}

inline void expect_equal_results(const IRModule& before, const IRModule& after) {
  passes::expect_same_results(before, after, inputs_of(before), 0);
}

}  // namespace headrace::partition
