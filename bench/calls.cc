// A call of a C++ function from C++, type-erased, with two ints: calls.py compiles this twice, for Headrace and, with
// CALLS_OF_TVM_FFI, for apache-tvm-ffi, with the same compiler and options.
#include <cstdint>

#ifdef CALLS_OF_TVM_FFI

#include <tvm/ffi/function.h>

using Function = tvm::ffi::Function;

static Function make_function() {
  Function::SetGlobal("bench.add", Function::FromTyped([](int64_t a, int64_t b) { return a + b; }));
  return Function::GetGlobalRequired("bench.add");
}

static int64_t call(const Function& function, int64_t a, int64_t b) { return function(a, b).cast<int64_t>(); }

#else

#include "object/function.h"

using Function = headrace::PackedFunc;

static Function make_function() {
  headrace::register_global("bench.add", headrace::make_packed([](int64_t a, int64_t b) { return a + b; }));
  return headrace::get_global("bench.add");
}

static int64_t call(const Function& function, int64_t a, int64_t b) { return function(a, b).as<int64_t>(); }

#endif

// 0 + 1 + ... + (count - 1), a call for each sum.
extern "C" int64_t sum_of_calls(int64_t count) {
  static const Function function = make_function();
  int64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum = call(function, sum, i);
  return sum;
}
