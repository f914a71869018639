#include "relay/function_attrs.h"

namespace headrace::relay {

bool is_primitive(const FunctionNode& function) {
  const auto value = function.attrs.get(kPrimitive);
  return value && value->is<int64_t>() && value->as<int64_t>() != 0;
}

bool is_left_alone(const FunctionNode& function) {
  return is_primitive(function) || function.attrs.contains(kCompiler) || function.attrs.contains(kSkipOptimization);
}

bool is_sealed(const FunctionNode& function) {
  return is_primitive(function) || function.attrs.contains(kCompiler) || function.attrs.contains(kComposite);
}

bool is_entered(const Expr& expr) {
  const auto* function = expr.as<FunctionNode>();
  return function == nullptr || !(is_sealed(*function) || is_left_alone(*function));
}

}  // namespace headrace::relay
