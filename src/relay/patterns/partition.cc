#include "relay/patterns/partition.h"

#include <algorithm>

#include "relay/patterns/matcher.h"
#include "relay/unique_binders.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

Function with_attrs(const Function& function, const DictAttrs& attrs) {
  DictAttrs all = function->attrs;
  for (const auto& [key, value] : plain_attrs(attrs)) all.set(key, value);
  return copy_with(*function, [&](FunctionNode& node) { node.attrs = all; });
}

// A function that a group embeds may also be called elsewhere, and its parameters would be bound twice.
bool may_repeat_binders(const std::vector<PatternGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const PatternGroup& group) {
    return std::any_of(group.parts.begin(), group.parts.end(), [](const Expr& part) {
      return part.is<FunctionNode>() || part.is<LetNode>() || part.is<MatchNode>();
    });
  });
}

}  // namespace

Expr partition_graph(const PatternIndex& pattern, const ExprIndex& graph, const DictAttrs& attrs,
                     const GroupOptions& options) {
  const Expr& root = graph.nodes().back();
  // A function pattern by itself matches functions that are not called where they stand.
  if (pattern.nodes[static_cast<size_t>(pattern.root)].pattern.is<FunctionPatternNode>()) return root;
  const std::vector<PatternGroup> groups = find_groups(pattern, graph, options);
  if (groups.empty()) return root;
  std::unordered_map<const Object*, size_t> group_at;
  for (size_t i = 0; i < groups.size(); ++i) group_at.emplace(groups[i].root.object(), i);
  std::unordered_map<const Object*, Expr> done;
  const Expr result = rewrite_post_order(root, [&](const Expr& before, const Expr& after) {
    Expr now = after;
    if (const auto found = group_at.find(before.object()); found != group_at.end()) {
      const PatternGroup& group = groups[found->second];
      Array<Expr> args;
      for (const Expr& input : group.inputs) args.push_back(done.at(input.object()));
      now = make_call(Expr(with_attrs(function_of(group, found->second), attrs)), args, {}, {}, group.root->span);
    }
    done.emplace(before.object(), now);
    return now;
  });
  return may_repeat_binders(groups) ? unique_binders(result) : result;
}

Expr partition_pattern(const DFPattern& pattern, const Expr& expr, const DictAttrs& attrs,
                       const GroupOptions& options) {
  const PatternIndex index(pattern);
  const Expr typed = typed_for(index, expr);
  const Expr result = partition_graph(index, ExprIndex(typed), attrs, options);
  return result == typed ? expr : result;
}

}  // namespace headrace::relay
