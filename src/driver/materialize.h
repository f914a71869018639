// Big constants: compiled and run here, not interpreted (pass::ConstantEvaluator).
#pragma once

#include "driver/compile.h"

namespace headrace::driver {

// An op that reads each element once takes some 9 ns an element in the interpreter; a compile takes 30 to 45 ms before
// the first element. (FoldScaleAxis over ResNet-50, whose weights all lie below: 0.25 s interpreted, 0.45 s compiled.)
inline constexpr int64_t kCompiledElements = 4'000'000;

// Evaluates closed expressions: their large constants become inputs of a program that is compiled for this machine,
// without FoldConstant, and run; programs that differ in the data of those constants alone are compiled once. One call
// of an op that computes fewer than `compiled_elements` elements, each from one of its inputs', is interpreted. Results
// are one tensor each, those of the interpreter up to the rounding of sums. UserError as compile_to_memory. `jobs` as
// in CompileOptions. One thread at a time.
std::shared_ptr<pass::ConstantEvaluator> make_compiling_evaluator(int32_t jobs,
                                                                  int64_t compiled_elements = kCompiledElements);

}  // namespace headrace::driver
