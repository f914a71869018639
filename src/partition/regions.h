// Regions of a function's body: which nodes a backend other than the native one computes together.
//
// A region has nodes of one scope (relay/scopes.h), so that the call that replaces it has its inputs in scope and its
// outputs reach their users: it does not span the branches of an `if`, the bodies of functions or a let and its value.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "partition/flow.h"

namespace headrace::partition {

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

}  // namespace headrace::partition
