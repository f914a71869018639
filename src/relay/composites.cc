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

void check_composite_depth(int depth, const CallNode& call) {
  constexpr int kMost = 64;
  if (depth > kMost)
    throw_at(call.span, "compile",
             fmt::format("more than {} functions with the attribute Composite are in each other here; write their "
                         "bodies into one",
                         kMost));
}

}  // namespace headrace::relay
