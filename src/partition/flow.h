// The dataflow of a body: an index graph of its nodes. Variables, constants and names are not nodes of it.
#pragma once

#include <span>
#include <vector>

#include "graph/index_graph.h"
#include "object/object_map.h"
#include "relay/expr.h"

namespace headrace::partition {

inline constexpr int32_t kNone = -1;

// The dataflow of a body.
struct Flow {
  // A value that is handed over to a node, in the order of a walk from the result, operands first.
  struct Use {
    Expr value;
    int32_t from;  // the node of the value; kNone for variables, constants and names
    int32_t to;    // the node that takes it; kNone for the result of the body
  };

  Expr body;
  std::vector<Expr> nodes;  // each after all that it uses
  std::vector<int32_t> scope;
  std::vector<Use> uses;
  ObjectMap<int32_t> index;  // number of each node
  // The node of each child of each node, in the order of relay::children_of(), as Use::from; one node after another.
  // Those of node i begin at child_begins[i].
  std::vector<int32_t> children;
  std::vector<size_t> child_begins;

  int32_t num_nodes() const { return static_cast<int32_t>(nodes.size()); }
  const Expr& node(int32_t i) const { return nodes[static_cast<size_t>(i)]; }
  // Returns the node of an expression; kNone when it is none.
  int32_t find(const Expr& expr) const {
    const int32_t* node = index.find(expr.object());
    return node == nullptr ? kNone : *node;
  }
  // Returns the nodes of the children of a node; none for a function that passes do not enter.
  std::span<const int32_t> children_of(int32_t i) const {
    const auto at = static_cast<size_t>(i);
    return std::span<const int32_t>(children).subspan(child_begins[at], child_begins[at + 1] - child_begins[at]);
  }
  // Returns the edges from values to their users. It is topological.
  graph::IndexGraph graph() const;
};

// Reads a body; functions that passes do not enter (relay/function_attrs.h) are nodes without inputs. Uses no
// recursion.
Flow make_flow(const Expr& body);

// Gives `after`, which computes what `before` does, the type of `before`, if it has one.
Expr retyped(const Expr& before, const Expr& after);

}  // namespace headrace::partition
