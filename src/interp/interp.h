// The reference interpreter of relay, which defines the result of every program. It is slow and simple; every lowering,
// pass and executor is tested against it.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "ops/eval_work.h"
#include "relay/expr.h"

namespace headrace::interp {

enum class Precision : uint8_t {
  declared,  // computes every tensor in its own dtype
  float64,  // computes float32, float16 and bfloat16 tensors as float64, which shows the result almost without rounding
};

// Computes a call of a function that another compiler takes (its attribute Compiler). `args` and the result are
// tensors, or ADT tuples of tensors. Returns nothing if the interpreter is to evaluate the function's body.
using ExternalCall = std::function<std::optional<Value>(const relay::Function& function, std::span<const Value> args)>;

struct Options {
  Precision precision = Precision::declared;
  int64_t max_depth = 50'000;     // the limit of nested function calls and branches; UserError beyond it
  ops::EvalWork* work = nullptr;  // limits and threads of the ops' evaluations; null: no limits, one thread
  // Called for each call of such a function that captures no variables and takes tensors. Null: all bodies are
  // evaluated, as they are with the precision float64.
  ExternalCall call_external = {};
};

// A value of a data type: its constructor and the constructor's arguments.
struct ConstructorValueObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "interp.ConstructorValue";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  Constructor constructor;
  std::vector<Value> parts;
  static void fields(FieldList<ConstructorValueObj>& f);
};

// Returns the current contents of a reference. Throws UserError for a value that is not a reference.
Value read_ref(const Value& value);

// Returns a reference that holds a value as `run` takes it.
Value make_ref(const Value& content);

// Registers the object types of the interpreter's values.
void register_types();

// Runs function `name` of `module` on tensors, ADT tuples of tensors, or values of data types. Returns an NDArray, an
// ADT for a tuple, a ConstructorValueObj for a value of a data type, or a reference. The module need not be typed.
// Throws UserError for a wrong number, shape or dtype of arguments, and at an op that cannot run.
Value run(const IRModule& module, std::string_view name, const std::vector<Value>& args, const Options& options = {});
// Runs the function `main` and returns the tensors of its result in order, with tuples flattened.
std::vector<NDArray> run_main(const IRModule& module, const std::vector<NDArray>& args, const Options& options = {});
// Evaluates a closed expression.
Value run_expr(const Expr& expr, const Options& options = {});

}  // namespace headrace::interp
