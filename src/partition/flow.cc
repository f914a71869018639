#include "partition/flow.h"

#include "partition/flow_reader.h"

namespace headrace::partition {

namespace {

// Looks through nothing.
struct PlainBody {
  static const ExprNode* value_of(const ExprNode* written) { return written; }
  static void handed(const FlowChild&) {}
  static void left(const Expr&, const ExprNode&, std::span<const FlowChild>) {}
};

}  // namespace

graph::IndexGraph Flow::graph() const {
  std::vector<graph::Edge> edges;
  edges.reserve(uses.size());
  for (const Use& use : uses) {
    if (use.from != kNone && use.to != kNone) edges.push_back({use.from, use.to});
  }
  return graph::IndexGraph(num_nodes(), edges);
}

Flow make_flow(const Expr& body) {
  PlainBody plain;
  return FlowReader(body, plain).take();
}

Expr retyped(const Expr& before, const Expr& after) {
  if (after != before && before->has_checked_type() && !after->has_checked_type())
    after->set_checked_type(before->checked_type());
  return after;
}

}  // namespace headrace::partition
