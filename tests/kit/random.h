// Pseudo-random numbers that are the same on every machine and with every standard library.
#pragma once

#include <cstdint>
#include <span>

namespace headrace::kit {

// SplitMix64 (Steele, Lea, Flood 2014): one 64-bit state, passes BigCrush; fast enough to fill weights.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  // Returns a number in [low, high], both included. The bias for ranges far below 2^64 does not matter to a test.
  int64_t integer(int64_t low, int64_t high) {
    uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (range == 0 ? next() : next() % range));
  }
  size_t index(size_t size) { return static_cast<size_t>(next() % size); }
  // Returns a number in [0, 1) with 24 bits: every value is a float.
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  bool chance(float probability) { return uniform() < probability; }
  // Values of the given standard deviation around `mean`, uniformly distributed.
  void fill(std::span<float> values, float mean, float deviation);

 private:
  uint64_t state_;
};

}  // namespace headrace::kit
