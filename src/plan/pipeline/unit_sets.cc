#include "plan/pipeline/unit_sets.h"

namespace headrace::plan {

Dependencies::Dependencies(const SplitGraph& graph)
    : before(as_index(graph.num_units), UnitSet(graph.num_units)), after(before) {
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    before[as_index(unit)].add(unit);
    for (const int32_t tensor : graph.inputs[as_index(unit)])
      before[as_index(unit)].add_all(before[as_index(graph.tensor_producer[as_index(tensor)])]);
  }
  for (int32_t unit = graph.num_units; unit-- > 0;) {
    after[as_index(unit)].add(unit);
    for (const int32_t tensor : graph.outputs[as_index(unit)]) {
      for (const int32_t consumer : graph.tensor_consumers[as_index(tensor)])
        after[as_index(unit)].add_all(after[as_index(consumer)]);
    }
  }
  const auto compute_of = [&](const UnitSet& set) {
    int64_t sum = 0;
    set.each_of_both(set, [&](int32_t unit) { sum += graph.fastest(unit); });
    return sum;
  };
  for (const UnitSet& set : before) before_ns.push_back(compute_of(set));
  for (const UnitSet& set : after) after_ns.push_back(compute_of(set));
}

}  // namespace headrace::plan
