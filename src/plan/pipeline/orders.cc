#include "plan/pipeline/orders.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace headrace::plan {
namespace {

// Calls visit(other) for the producers of a unit's inputs, or the consumers of its outputs; one that has several
// tensors of the unit is visited for each.
template <typename Visit>
void each_producer(const SplitGraph& graph, int32_t unit, const Visit& visit) {
  for (const int32_t tensor : graph.inputs[static_cast<size_t>(unit)])
    visit(graph.tensor_producer[static_cast<size_t>(tensor)]);
}

template <typename Visit>
void each_consumer(const SplitGraph& graph, int32_t unit, const Visit& visit) {
  for (const int32_t tensor : graph.outputs[static_cast<size_t>(unit)]) {
    for (const int32_t consumer : graph.tensor_consumers[static_cast<size_t>(tensor)]) visit(consumer);
  }
}

// Returns the number of inputs of each unit that are still to come.
std::vector<int32_t> missing_inputs(const SplitGraph& graph) {
  std::vector<int32_t> missing;
  for (int32_t unit = 0; unit < graph.num_units; ++unit)
    missing.push_back(static_cast<int32_t>(graph.inputs[static_cast<size_t>(unit)].size()));
  return missing;
}

std::vector<int64_t> depths(const SplitGraph& graph, bool from_inputs) {
  std::vector<int64_t> depth(static_cast<size_t>(graph.num_units), 0);
  for (int32_t i = 0; i < graph.num_units; ++i) {
    const int32_t unit = from_inputs ? i : graph.num_units - 1 - i;
    int64_t& own = depth[static_cast<size_t>(unit)];
    const auto visit = [&](int32_t other) { own = std::max(own, depth[static_cast<size_t>(other)] + 1); };
    if (from_inputs) {
      each_producer(graph, unit, visit);
    } else {
      each_consumer(graph, unit, visit);
    }
  }
  return depth;
}

std::vector<int32_t> depth_first(const SplitGraph& graph) {
  std::vector<int32_t> missing = missing_inputs(graph), stack, order;
  for (int32_t unit = graph.num_units; unit-- > 0;) {
    if (missing[static_cast<size_t>(unit)] == 0) stack.push_back(unit);
  }
  while (!stack.empty()) {
    const int32_t unit = stack.back();
    stack.pop_back();
    order.push_back(unit);
    each_consumer(graph, unit, [&](int32_t consumer) {
      if (--missing[static_cast<size_t>(consumer)] == 0) stack.push_back(consumer);
    });
  }
  return order;
}

std::vector<int64_t> added_bytes(const SplitGraph& graph) {
  std::vector<int64_t> bytes(static_cast<size_t>(graph.num_units), 0);
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    bytes[static_cast<size_t>(graph.tensor_producer[tensor])] += graph.tensor_bytes[tensor];
    const auto consumers = graph.tensor_consumers[tensor];
    for (const int32_t consumer : consumers)
      bytes[static_cast<size_t>(consumer)] -= graph.tensor_bytes[tensor] / static_cast<int64_t>(consumers.size());
  }
  return bytes;
}

// Returns the bytes alive after each unit of the order: made by then, and read later.
std::vector<int64_t> live_bytes(const SplitGraph& graph, std::span<const int32_t> order) {
  std::vector<int32_t> place(order.size());
  for (size_t i = 0; i < order.size(); ++i) place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  std::vector<int64_t> live(order.size() + 1, 0);
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    int32_t last = 0;
    for (const int32_t consumer : graph.tensor_consumers[tensor])
      last = std::max(last, place[static_cast<size_t>(consumer)]);
    live[static_cast<size_t>(place[static_cast<size_t>(graph.tensor_producer[tensor])])] += graph.tensor_bytes[tensor];
    live[static_cast<size_t>(last)] -= graph.tensor_bytes[tensor];
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  return live;
}

}  // namespace

std::vector<int32_t> order_by_key(const SplitGraph& graph, std::span<const int64_t> key) {
  using Entry = std::pair<int64_t, int32_t>;
  std::vector<int32_t> missing = missing_inputs(graph), order;
  order.reserve(missing.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  const auto push = [&](int32_t unit) { ready.emplace(key[static_cast<size_t>(unit)], unit); };
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    if (missing[static_cast<size_t>(unit)] == 0) push(unit);
  }
  while (!ready.empty()) {
    const int32_t unit = ready.top().second;
    ready.pop();
    order.push_back(unit);
    each_consumer(graph, unit, [&](int32_t consumer) {
      if (--missing[static_cast<size_t>(consumer)] == 0) push(consumer);
    });
  }
  return order;
}

std::vector<std::vector<int32_t>> five_orders(const SplitGraph& graph) {
  std::vector<int32_t> by_number(static_cast<size_t>(graph.num_units));
  std::iota(by_number.begin(), by_number.end(), 0);
  std::vector<int64_t> late = depths(graph, false);
  for (int64_t& depth : late) depth = -depth;
  return {by_number, order_by_key(graph, depths(graph, true)), order_by_key(graph, late), depth_first(graph),
          order_by_key(graph, added_bytes(graph))};
}

std::vector<int32_t> group_at_least_live_cuts(const SplitGraph& graph, std::span<const int32_t> order,
                                              int32_t num_groups) {
  const std::vector<int64_t> live = live_bytes(graph, order);
  std::vector<int64_t> time(order.size() + 1, 0);  // before each place; a nanosecond more, so that each unit counts
  for (size_t i = 0; i < order.size(); ++i) time[i + 1] = std::min(kNever, time[i] + graph.fastest(order[i]) + 1);
  std::vector<int32_t> group(order.size());
  int32_t made = 0;
  size_t begin = 0;  // first node of the group
  for (int32_t part = 1; part <= num_groups && begin < order.size(); ++part) {
    const auto end_of = [&](int32_t number) {
      const double share = static_cast<double>(number) / num_groups * static_cast<double>(time.back());
      return static_cast<size_t>(std::lower_bound(time.begin(), time.end(), static_cast<int64_t>(share)) -
                                 time.begin());
    };
    // The cut after this part may lie anywhere in the part: parts are far smaller than stages.
    size_t cut = order.size();
    if (part < num_groups) {
      const size_t first = std::max(begin + 1, end_of(part - 1) + 1), last = std::min(order.size(), end_of(part));
      if (first > last) continue;
      cut = first;
      for (size_t i = first; i <= last; ++i) {
        if (live[i - 1] < live[cut - 1]) cut = i;
      }
    }
    for (; begin < cut; ++begin) group[static_cast<size_t>(order[begin])] = made;
    ++made;
  }
  return group;
}

}  // namespace headrace::plan
