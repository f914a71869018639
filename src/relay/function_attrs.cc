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

}  // namespace headrace::relay
