#include "passes/primitive.h"

namespace headrace::passes {

bool is_primitive(const relay::FunctionNode& function) {
  const auto value = function.attrs.get(kPrimitive);
  return value && value->is<int64_t>() && value->as<int64_t>() != 0;
}

}  // namespace headrace::passes
