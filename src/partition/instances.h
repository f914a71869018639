// Instances: the pieces of a program that patterns of backends match, each of which a plan may take by itself.
//
//   sin(cos(%x)), patterns "a.both": sin(cos(_)) and "a.cos": cos(_)   ->   two instances, which share the cos
//
// Placement by cost (partition/placement/by_cost.h) chooses among them: two that share a node exclude each other.
#pragma once

#include "partition/composition.h"
#include "partition/rules.h"

namespace headrace::partition {

struct InstanceSet {
  IRModule module;  // whose expressions they are: the one given, with effects in order where there are instances
  std::vector<Instance> all;
  // Those of the plans made without costs: of the whole list by priority, and of each backend alone.
  std::vector<int32_t> of_list;
  std::vector<std::vector<int32_t>> of_backend;
  PatternRefusals refusals = {};  // matches that the backends of the whole list refuse
};

// Finds what MergeComposite makes functions for the whole list and for each backend alone, and then every match of each
// pattern, whether or not others take a part of it. `module` is typed. UserError as merge_composite.
InstanceSet find_instances(const IRModule& module, const Backends& backends);

// The main of a module with some instances as calls of their functions.
struct Composed {
  Expr body;  // nodes above the calls have no types
  // The expression of the module that each expression of the body stands for, where that is another one.
  ObjectMap<Expr> before;
};
Composed compose_instances(const IRModule& module, std::span<const Instance* const> chosen);

// Returns the typed module with these instances as calls; the module itself where there are none.
IRModule with_instances(const IRModule& module, std::span<const Instance* const> chosen);

// Returns the typed module with those instances, no two of which replace one expression, for which `is_wanted` is true;
// earlier ones first.
IRModule with_instances_where(const InstanceSet& set, const std::function<bool(const Instance&)>& is_wanted);

}  // namespace headrace::partition
