// Regions of a function's body: which nodes a backend other than the native one computes together.
//
// A body is seen as an index graph (Flow) of its nodes; variables, constants and names are not nodes of it. A region
// has nodes of one scope (relay/scopes.h), so that the call that replaces it has its inputs in scope and its outputs
// reach their users: it does not span the branches of an `if`, the bodies of functions or a let and its value.
#pragma once

#include <set>
#include <span>
#include <string>
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

// Returns whether `expr` can be part of a region: a call with arguments, a tuple with items, an item of a tuple.
bool is_computation(const Expr& expr);
// Returns why a region cannot hold a computation that is_computation() allows; empty when it can. References, calls of
// variables and functions of the module, and functions that capture variables cannot.
std::string region_fault(const Expr& expr);

// Returns whether a tensor of the type has a size that is not a number.
bool has_open_sizes(const Type& type);

// The regions of a flow, numbered in the order in which their first results are used.
struct Regions {
  std::vector<int32_t> region;       // by node; kNone outside of all
  std::vector<std::string> backend;  // by region
};

// Gives tuples and items of tuples without a backend the one that all nodes have which take them, or else from which
// they are made; the others stay. So parts that a tuple connects can be one.
void label_tuples(const Flow& flow, std::vector<std::string>& backend);

// Chooses few regions for nodes that have a backend; `backend` is empty for all others. Tuples and items of tuples
// follow the nodes that they connect. Every region is connected, of one backend and one scope, and the quotient of all
// is acyclic; the order does not depend on addresses. Each call of a backend in `one_call` is a region of its own, with
// the tuples that are made for it alone.
Regions choose_regions(const Flow& flow, std::vector<std::string> backend, const std::set<std::string>& one_call = {});

// Numbers regions as Regions does; drops those without a call, and takes tuples out that only other nodes use. `group`
// has a group by node, kNone outside of all; `backend` is that of each group.
Regions number_regions(const Flow& flow, std::vector<int32_t> group, const std::vector<std::string>& backend);

// Returns an order of the regions and of the nodes outside, in which each comes after all that it uses. A region r is
// the number num_nodes() + r. UserError at a node on the way for regions that a path leaves and enters again.
std::vector<int32_t> order_units(const Flow& flow, const Regions& regions);

// Returns a number of regions that no choice for these nodes is below, as graph::region_lower_bound does; tuples are
// counted where they connect nodes.
int64_t fewest_regions_of(const Flow& flow, std::vector<std::string> backend,
                          const std::set<std::string>& one_call = {});

// Gives `after`, which computes what `before` does, the type of `before`, if it has one.
Expr retyped(const Expr& before, const Expr& after);

}  // namespace headrace::partition
