// Big constants: compiled and run here, not interpreted (pass::ConstantEvaluator).
#pragma once

#include "driver/compile.h"

namespace headrace::driver {

// Evaluates closed expressions: their large constants become inputs of a program that is compiled for this machine,
// without FoldConstant, and run; programs that differ in the data of those constants alone are compiled once. Results
// are one tensor each, those of the interpreter up to the rounding of sums. UserError as compile_to_memory. `jobs` as in
// CompileOptions. One thread at a time.
std::shared_ptr<pass::ConstantEvaluator> make_compiling_evaluator(int32_t jobs);

}  // namespace headrace::driver
