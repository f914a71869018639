// Counters: numbers that one thread writes and any thread reads, and histograms of durations.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace headrace::executors::pipeline {

// Written by one thread at a time, whose writes are ordered by other means.
class Counter {
 public:
  void add(uint64_t amount) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

// Durations in nanoseconds, in classes, each at most a quarter wider than its least member. Any thread may
// add.
class Histogram {
 public:
  void add(uint64_t nanoseconds) noexcept {
    classes_[class_of(nanoseconds)].fetch_add(1, std::memory_order_relaxed);
    uint64_t most = most_.load(std::memory_order_relaxed);
    while (nanoseconds > most && !most_.compare_exchange_weak(most, nanoseconds, std::memory_order_relaxed)) {
    }
  }
  // Returns a duration that the share `quantile` of all does not exceed, exact to a quarter; 0 when there are none.
  uint64_t quantile(double quantile) const noexcept {
    uint64_t total = 0;
    for (const auto& count : classes_) total += count.load(std::memory_order_relaxed);
    if (total == 0) return 0;
    const auto wanted = static_cast<uint64_t>(quantile * static_cast<double>(total - 1)) + 1;
    uint64_t seen = 0;
    for (size_t i = 0; i < classes_.size(); ++i) {
      seen += classes_[i].load(std::memory_order_relaxed);
      if (seen >= wanted) return std::min(first_above(i), most());
    }
    return most();
  }
  uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

 private:
  // Four classes for each power of two from 4 up; below, one for each number.
  static size_t class_of(uint64_t value) noexcept {
    if (value < 4) return static_cast<size_t>(value);
    const auto width = static_cast<unsigned>(std::bit_width(value));
    return (width - 2) * 4 + static_cast<size_t>(value >> (width - 3) & 3U);
  }
  // Returns the largest member of a class.
  static uint64_t first_above(size_t index) noexcept {
    if (index < 4) return index;
    const auto shift = static_cast<unsigned>(index / 4 - 1);
    return ((uint64_t{4} + index % 4 + 1) << shift) - 1;
  }

  std::array<std::atomic<uint64_t>, 252> classes_{};
  std::atomic<uint64_t> most_ = 0;
};

}  // namespace headrace::executors::pipeline
