#include "tir_passes/pipeline.h"

#include "tir_passes/lower_math.h"
#include "tir_passes/unroll_loop.h"
#include "tir_passes/vectorize_loop.h"

namespace headrace::tir_passes {

tir::PrimFunc run_pipeline(const tir::PrimFunc& function) {
  tir::PrimFunc result = vectorize_loop(function);
  result = unroll_loop(result);
  return lower_math(result);
}

}  // namespace headrace::tir_passes
