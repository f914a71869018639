// The reference interpreter of relay: the definition of what a program computes. Slow and plain; every lowering, pass
// and executor is tested against it.
#pragma once

#include "ops/eval_work.h"
#include "relay/expr.h"

namespace headrace::interp {

enum class Precision : uint8_t {
  declared,  // every tensor in its own dtype
  float64,   // float32, float16 and bfloat16 tensors are computed as float64: what the model means, without rounding
};

struct Options {
  Precision precision = Precision::declared;
  int64_t max_depth = 50'000;     // nested function calls and branches; UserError beyond
  ops::EvalWork* work = nullptr;  // limits and threads of the ops' evaluations; null: none, and one thread
};

// A value of a data type: what made it, and of what.
struct ConstructorValueObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "interp.ConstructorValue";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  Constructor constructor;
  std::vector<Value> parts;
  static void fields(FieldList<ConstructorValueObj>& f);
};

// What a reference holds now; UserError for a value that is none.
Value read_ref(const Value& value);

// The types of the values above, by number.
void register_types();

// Runs function `name` of `module` on tensors (or ADT tuples of them, or values of data types) and gives its value: an
// NDArray, an ADT for a tuple, a ConstructorValueObj for a value of a data type, a reference. The module need not be
// typed. UserError on a wrong number, shape or dtype of arguments, at the op that cannot run.
Value run(const IRModule& module, std::string_view name, const std::vector<Value>& args, const Options& options = {});
// As above, for the function `main`; the tensors of its result in order, tuples flattened.
std::vector<NDArray> run_main(const IRModule& module, const std::vector<NDArray>& args, const Options& options = {});
// The value of a closed expression.
Value run_expr(const Expr& expr, const Options& options = {});

}  // namespace headrace::interp
