#include "partition/check_composites.h"

#include <algorithm>

#include "partition/compose.h"
#include "relay/function_attrs.h"
#include "relay/patterns/groups.h"
#include "relay/visit.h"

namespace headrace::partition {

namespace {

using relay::CallNode;
using relay::FunctionNode;

bool is_call(const Expr& expr) { return expr.is<CallNode>(); }

bool matches_whole(const relay::DFPattern& pattern, const Expr& body) {
  std::ptrdiff_t num_calls = 0;
  relay::post_order(body, [&](const Expr& expr) { num_calls += is_call(expr) ? 1 : 0; });
  const auto is_whole = [&](const relay::PatternGroup& group, const Expr&) {
    return group.root == body && std::count_if(group.parts.begin(), group.parts.end(), &is_call) == num_calls;
  };
  return !relay::find_groups(relay::PatternIndex(pattern), relay::ExprIndex(body), {.accepts = is_whole}).empty();
}

void check_composite(const FunctionNode& function, const Backend& backend) {
  const auto name = function.attrs.get(relay::kComposite);
  if (!name || !name->is<std::string>()) return;
  bool is_known = false;
  for (const CompositePattern& entry : backend.patterns()) {
    if (entry.name != name->as<std::string>()) continue;
    if (matches_whole(entry.pattern, function.body)) return;
    is_known = true;
  }
  if (is_known)
    throw_at(
        function.span, "compile",
        fmt::format("the function has the name '{}' of a pattern of the backend '{}', and that pattern does not match "
                    "its body as a whole; give it the pattern's body, or no attribute Composite",
                    name->as<std::string>(), backend.name()));
}

}  // namespace

void check_composites(const Expr& body, const Backend& backend) {
  if (backend.patterns().empty()) return;
  relay::post_order(body, [&](const Expr& expr) {
    if (const auto* function = expr.as<FunctionNode>()) check_composite(*function, backend);
  });
}

}  // namespace headrace::partition
