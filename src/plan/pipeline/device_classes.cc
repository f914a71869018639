#include "plan/pipeline/device_classes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace headrace::plan {
namespace {

bool is_same_link(const SplitLink& a, const SplitLink& b) {
  return a.bytes_per_second == b.bytes_per_second && a.latency_ns == b.latency_ns;
}

SplitLink link_between(const SplitProblem& problem, size_t from, size_t to) {
  const auto& links = problem.devices[from].links;
  return links.empty() ? SplitLink{} : links[to];
}

bool can_be_swapped(const SplitProblem& problem, size_t a, size_t b) {
  const SplitDevice &first = problem.devices[a], &second = problem.devices[b];
  if (first.kind != second.kind || first.memory_bytes != second.memory_bytes || first.overlaps != second.overlaps ||
      !is_same_link(link_between(problem, a, b), link_between(problem, b, a)))
    return false;
  for (size_t other = 0; other < problem.devices.size(); ++other) {
    if (other != a && other != b &&
        (!is_same_link(link_between(problem, a, other), link_between(problem, b, other)) ||
         !is_same_link(link_between(problem, other, a), link_between(problem, other, b))))
      return false;
  }
  return true;
}

// Mixed-radix numbers: one digit for each class, which counts its taken devices.
DeviceStates all_ways(const DeviceClasses& classes, int32_t max_replicas) {
  DeviceStates made;
  made.is_complete = true;
  std::vector<int32_t> digits(classes.size(), 0);
  for (bool more = true; more;) {
    const int32_t state = made.size();
    made.used.push_back(std::accumulate(digits.begin(), digits.end(), 0));
    made.counts.insert(made.counts.end(), digits.begin(), digits.end());
    int32_t weight = 1;
    for (size_t i = 0; i < digits.size(); ++i) {
      for (int32_t replicas = 1; replicas <= std::min(digits[i], max_replicas); ++replicas)
        made.steps.push_back({state - replicas * weight, state, static_cast<int32_t>(i), replicas});
      weight *= static_cast<int32_t>(classes.classes[i].devices.size()) + 1;
    }
    more = false;
    for (size_t i = 0; i < digits.size() && !more; ++i) {
      more = ++digits[i] <= static_cast<int32_t>(classes.classes[i].devices.size());
      if (!more) digits[i] = 0;
    }
  }
  return made;
}

// Takes the devices of the classes in the order given, each class as a whole. Devices may be left out between stages.
DeviceStates one_way(const DeviceClasses& classes, const std::vector<size_t>& order, int32_t max_replicas) {
  DeviceStates made;
  made.used = {0};
  made.counts.assign(classes.size(), 0);
  for (const size_t chosen : order) {
    for (int32_t i = 1; i <= static_cast<int32_t>(classes.classes[chosen].devices.size()); ++i) {
      const int32_t state = made.size();
      made.used.push_back(state);
      const auto before = made.counts.end() - static_cast<std::ptrdiff_t>(classes.size());
      const std::vector<int32_t> counts(before, made.counts.end());
      made.counts.insert(made.counts.end(), counts.begin(), counts.end());
      ++made.counts[static_cast<size_t>(state) * classes.size() + chosen];
      for (int32_t replicas = 1; replicas <= std::min(i, max_replicas); ++replicas) {
        for (int32_t from = 0; from <= state - replicas; ++from)
          made.steps.push_back({from, state, static_cast<int32_t>(chosen), replicas});
      }
    }
  }
  return made;
}

}  // namespace

int64_t DeviceClass::stage_time(int64_t compute_ns, int64_t transfers_ns) const {
  return std::min(kNever, overlaps ? std::max(compute_ns, transfers_ns) : compute_ns + transfers_ns);
}

int64_t DeviceClasses::transfer_ns(size_t from, size_t to, int64_t bytes) const {
  const SplitLink& link = links[from * size() + to];
  if (link.bytes_per_second == 0) return link.latency_ns;
  const double time = static_cast<double>(bytes) * 1e9 / static_cast<double>(link.bytes_per_second);
  return link.latency_ns + static_cast<int64_t>(std::ceil(time));
}

int64_t DeviceClasses::least_in_ns(size_t to, int64_t bytes) const {
  int64_t least = kNever;
  for (size_t from = 0; from < size(); ++from) {
    if (from != to || classes[to].devices.size() > 1) least = std::min(least, transfer_ns(from, to, bytes));
  }
  return least == kNever ? 0 : least;
}

int64_t DeviceClasses::least_out_ns(size_t from, int64_t bytes) const {
  int64_t least = kNever;
  for (size_t to = 0; to < size(); ++to) {
    if (from != to || classes[from].devices.size() > 1) least = std::min(least, transfer_ns(from, to, bytes));
  }
  return least == kNever ? 0 : least;
}

DeviceClasses classify_devices(const SplitProblem& problem) {
  DeviceClasses made;
  made.num_devices = static_cast<int32_t>(problem.devices.size());
  for (size_t device = 0; device < problem.devices.size(); ++device) {
    const auto same = std::find_if(made.classes.begin(), made.classes.end(), [&](const DeviceClass& one) {
      return std::all_of(one.devices.begin(), one.devices.end(),
                         [&](int32_t other) { return can_be_swapped(problem, device, static_cast<size_t>(other)); });
    });
    if (same != made.classes.end()) {
      same->devices.push_back(static_cast<int32_t>(device));
      continue;
    }
    const SplitDevice& one = problem.devices[device];
    made.classes.push_back({one.kind, one.memory_bytes, one.overlaps, {static_cast<int32_t>(device)}});
  }
  for (const DeviceClass& from : made.classes) {
    for (const DeviceClass& to : made.classes) {
      const bool is_own = &from == &to && from.devices.size() > 1;
      made.links.push_back(link_between(problem, static_cast<size_t>(from.devices.front()),
                                        static_cast<size_t>(is_own ? to.devices[1] : to.devices.front())));
    }
  }
  return made;
}

std::vector<DeviceStates> device_states(const DeviceClasses& classes, int32_t max_replicas) {
  int64_t count = 1;
  for (const DeviceClass& one : classes.classes) {
    if (count <= kMaxDeviceStates) count *= static_cast<int64_t>(one.devices.size()) + 1;
  }
  if (count <= kMaxDeviceStates) return {all_ways(classes, max_replicas)};
  std::vector<size_t> order(classes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::vector<DeviceStates> made{one_way(classes, order, max_replicas)};
  std::reverse(order.begin(), order.end());
  made.push_back(one_way(classes, order, max_replicas));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return classes.classes[a].memory_bytes > classes.classes[b].memory_bytes;
  });
  made.push_back(one_way(classes, order, max_replicas));
  return made;
}

}  // namespace headrace::plan
