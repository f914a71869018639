#include "driver/materialize.h"

#include "load/run.h"
#include "relay/print.h"
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

class CompilingEvaluator : public pass::ConstantEvaluator {
 public:
  explicit CompilingEvaluator(int32_t jobs) : jobs_(jobs) {}

  NDArray evaluate(const Expr& closed) override {
    const OpenProgram program = open_program(closed);
    std::string text = relay::print_module(program.module);
    auto entry = executors_.find(text);
    if (entry == executors_.end()) entry = executors_.emplace(std::move(text), compile(program.module)).first;
    return load::run(*entry->second, program.inputs).at(0);
  }

 private:
  std::shared_ptr<load::Executor> compile(const IRModule& module) const {
    CompiledModel compiled =
        compile_to_memory(make_model(module), {.jobs = jobs_, .disabled_passes = {"FoldConstant"}});
    const auto artifact = load::open_artifact(std::move(compiled.descriptor), "a constant's program");
    if (!artifact) throw UserError(artifact.refusal().message);
    const auto executor = load::Executor::make(artifact.value(), artifact::kDefaultProgram, 1);
    if (!executor) throw UserError(executor.refusal().message);
    return executor.value();
  }

  int32_t jobs_;
  std::map<std::string, std::shared_ptr<load::Executor>> executors_;  // by the program's text
};

}  // namespace

std::shared_ptr<pass::ConstantEvaluator> make_compiling_evaluator(int32_t jobs) {
  return std::make_shared<CompilingEvaluator>(jobs);
}

}  // namespace headrace::driver
