#include "tir_passes/pipeline.h"

#include "tir_passes/lower_math.h"
#include "tir_passes/unroll_loop.h"
#include "tir_passes/vectorize_loop.h"

namespace headrace::tir_passes {

using FunctionPass = tir::PrimFunc (*)(const tir::PrimFunc&);

namespace {

struct Row {
  const char* name;
  FunctionPass run;
  const char* summary;
};
constexpr Row kRows[] = {
    {"VectorizeLoop", vectorize_loop, "loops marked vectorized become vector operations"},
    {"UnrollLoop", unroll_loop, "loops marked unrolled become copies of their body"},
    {"LowerMath", lower_math, "exp, log, tanh and erf of float32 become polynomials"},
};

IRModule run_on_functions(const IRModule& module, FunctionPass run) {
  IRModule result = module;
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<tir::PrimFuncNode>()) continue;
    const tir::PrimFunc rewritten = run(function.cast<tir::PrimFuncNode>());
    if (rewritten == function) continue;
    if (result == module) result = snapshot(module);
    result->add_function(var, rewritten, true);
  }
  return result;
}

}  // namespace

std::vector<pass::Pass> pipeline() {
  std::vector<pass::Pass> list;
  for (const Row& row : kRows) {
    list.push_back({{row.name, 0, {}, row.summary}, [run = row.run](const IRModule& module, const pass::PassContext&) {
                      return run_on_functions(module, run);
                    }});
  }
  return list;
}

tir::PrimFunc run_pipeline(const tir::PrimFunc& function) {
  tir::PrimFunc result = function;
  for (const Row& row : kRows) result = row.run(result);
  return result;
}

}  // namespace headrace::tir_passes
