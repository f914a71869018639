#include "relay/composites.h"

#include "relay/function_attrs.h"

namespace headrace::relay {

const FunctionNode* called_composite(const CallNode& call) {
  const auto* function = call.op.as<FunctionNode>();
  return function != nullptr && function->attrs.contains(kComposite) ? function : nullptr;
}

std::string composite_name(const FunctionNode& function) {
  const auto name = function.attrs.get(kComposite);
  return name && name->is<std::string>() ? name->as<std::string>() : "";
}

}  // namespace headrace::relay
