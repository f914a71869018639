// Property tests: a claim that must hold for every generated value. The seed is fixed and printed on failure, and a
// failing value is shrunk to a smaller one that still fails.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kit/options.h"
#include "kit/random.h"

namespace headrace::kit {

template <typename T>
struct Property {
  uint64_t seed = 1;
  int runs_ci = 100;
  int runs_full = 1000;
  std::function<T(Random&)> generate;
  // Returns smaller candidates for a failing value, the boldest first. Empty: no shrinking.
  std::function<std::vector<T>(const T&)> shrink;
  // Returns the text that a failure shows for the value.
  std::function<std::string(const T&)> show;
  // The claim: returns nothing when it holds, else what is wrong. An exception is a failure, too.
  std::function<std::optional<std::string>(const T&)> check;
};

namespace detail {

template <typename T>
std::optional<std::string> failure_of(const Property<T>& property, const T& value) {
  try {
    return property.check(value);
  } catch (const std::exception& error) {
    return std::string("it threw: ") + error.what();
  }
}

// Returns the number of values; `few` uses an eighth of ci's.
template <typename T>
int runs_of(const Property<T>& property) {
  if (options().seed) return 1;
  return options().size == TestSize::kFew ? (property.runs_ci + 7) / 8 : by_size(property.runs_ci, property.runs_full);
}

// Takes the first candidate that still fails, again and again; a bound on steps guards against a shrinker that loops.
template <typename T>
int shrink_failure(const Property<T>& property, T& value, std::string& failure) {
  int steps = 0;
  bool smaller = static_cast<bool>(property.shrink);
  while (smaller && steps < 1000) {
    smaller = false;
    for (const T& candidate : property.shrink(value)) {
      if (auto message = failure_of(property, candidate)) {
        T next = candidate;
        value = std::move(next);
        failure = *message;
        smaller = true;
        ++steps;
        break;
      }
    }
  }
  return steps;
}

}  // namespace detail

// Checks the property on as many values as the test size gives. Each value has a seed of its own, so that --seed=N
// repeats one failure, where N is in the failure's message.
template <typename T>
testing::AssertionResult holds(const Property<T>& property) {
  const int runs = detail::runs_of(property);
  const bool lists = options().size == TestSize::kList;
  testing::Test::RecordProperty("cases", lists ? property.runs_full : runs);
  if (lists) return testing::AssertionSuccess();
  Random seeds(property.seed + 0x9e3779b97f4a7c15ULL * options().property_seed);
  for (int run = 0; run < runs; ++run) {
    uint64_t seed = options().seed.value_or(seeds.next());
    Random random(seed);
    T value = property.generate(random);
    auto failure = detail::failure_of(property, value);
    if (!failure) continue;
    int steps = detail::shrink_failure(property, value, *failure);
    return testing::AssertionFailure() << "run " << run << " of " << runs << " fails (after " << steps
                                       << " shrinking steps): " << *failure
                                       << "\nfor: " << (property.show ? property.show(value) : "(no show)")
                                       << "\nto repeat it alone: --seed=" << seed;
  }
  return testing::AssertionSuccess();
}

// Shrinks a list: without one half, without one quarter ..., without one element.
template <typename E>
std::vector<std::vector<E>> shrink_list(const std::vector<E>& list) {
  std::vector<std::vector<E>> candidates;
  for (size_t cut = (list.size() + 1) / 2; cut > 0; cut /= 2) {
    for (size_t begin = 0; begin < list.size(); begin += cut) {
      std::vector<E> shorter(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(begin));
      size_t end = std::min(begin + cut, list.size());
      shorter.insert(shorter.end(), list.begin() + static_cast<std::ptrdiff_t>(end), list.end());
      candidates.push_back(std::move(shorter));
    }
  }
  return candidates;
}

}  // namespace headrace::kit
