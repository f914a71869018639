#include "driver/materialize.h"

#include "interp/interp.h"
#include "load/run.h"
#include "ops/call_fusion.h"
#include "relay/infer/infer_type.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::driver {

namespace {

// Smaller ones stay in the program: they may be shapes and axes, which the types depend on.
constexpr int64_t kMaxElementsInside = 16;

// A closed expression as a function of its large constants.
struct OpenProgram {
  IRModule module;
  std::vector<NDArray> inputs;
};

OpenProgram open_program(const Expr& closed) {
  OpenProgram program;
  Array<relay::Var> params;
  const Expr body = relay::rewrite_post_order(closed, [&](const Expr&, const Expr& after) -> Expr {
    const auto* constant = after.as<relay::ConstantNode>();
    if (constant == nullptr || constant->data.num_elements() <= kMaxElementsInside) return after;
    const Type type = make_tensor_type(constant->data.shape(), constant->data.dtype());
    params.push_back(relay::make_var(fmt::format("p{}", params.size()), type));
    program.inputs.push_back(constant->data);
    return params[params.size() - 1];
  });
  program.module = make_module(relay::make_function(params, body));
  return program;
}

// Elements that a call of an elementwise or injective op computes; the largest number for anything else.
int64_t light_elements(const Expr& closed) {
  const auto* call = closed.as<relay::CallNode>();
  if (call == nullptr) return INT64_MAX;
  const Expr typed = relay::infer_type(closed);
  if (ops::fusion_kind_of(*typed.as<relay::CallNode>()) > ops::FusionKind::injective) return INT64_MAX;
  const auto* type = typed->checked_type().as<TensorTypeNode>();
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  return shape ? num_elements(*shape) : INT64_MAX;
}

class CompilingEvaluator : public pass::ConstantEvaluator {
 public:
  CompilingEvaluator(int32_t jobs, int64_t compiled_elements) : jobs_(jobs), compiled_elements_(compiled_elements) {}

  NDArray evaluate(const Expr& closed) override {
    if (light_elements(closed) < compiled_elements_) return interp::run_expr(closed).as<NDArray>();
    const OpenProgram program = open_program(closed);
    std::string text = relay::print_module(program.module);
    auto entry = executors_.find(text);
    if (entry == executors_.end()) entry = executors_.emplace(std::move(text), compile(program.module)).first;
    return load::run(*entry->second, program.inputs).at(0);
  }

 private:
  std::shared_ptr<load::Executor> compile(const IRModule& module) const {
    CompiledModel compiled = compile_to_memory(
        make_model(module), {.passes = {.opt_level = 0, .disabled_pass = {"FoldConstant"}}, .jobs = jobs_});
    return load::make_executor(open_compiled(std::move(compiled), "a constant's program"), artifact::kDefaultProgram,
                               1);
  }

  int32_t jobs_;
  int64_t compiled_elements_;
  std::map<std::string, std::shared_ptr<load::Executor>> executors_;  // by the program's text
};

}  // namespace

std::shared_ptr<pass::ConstantEvaluator> make_compiling_evaluator(int32_t jobs, int64_t compiled_elements) {
  return std::make_shared<CompilingEvaluator>(jobs, compiled_elements);
}

}  // namespace headrace::driver
