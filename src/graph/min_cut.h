// Minimum cuts: the least sum of costs of variables with two values, when each pair of values costs no more where the
// two agree than where they differ (V. Kolmogorov, R. Zabih, "What energy functions can be minimized via graph cuts?",
// 2004).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::graph {

// Collects the costs, then finds the values by a maximum flow (E. Dinic, 1970). Costs are integers whose sum does not
// pass 2^60.
class BinaryCosts {
 public:
  explicit BinaryCosts(int32_t num_variables) : first_(static_cast<size_t>(num_variables), 0), second_(first_) {}

  int32_t add_variable();
  // Adds the cost of the values 0 and 1 of a variable.
  void add(int32_t variable, int64_t zero, int64_t one);
  // Adds the cost of two variables' values, those of `a` first. InternalError unless
  // zero_zero + one_one <= zero_one + one_zero.
  void add(int32_t a, int32_t b, int64_t zero_zero, int64_t zero_one, int64_t one_zero, int64_t one_one);

  // Returns values with the least sum; where several have it, as many zeros as possible. No recursion.
  std::vector<bool> minimize() const;

 private:
  struct Arc {
    int32_t from, to;
    int64_t capacity;  // paid when `from` is 0 and `to` is 1
  };
  std::vector<int64_t> first_, second_;  // by variable: the costs of 0 and of 1, either of which may be negative
  std::vector<Arc> arcs_;
};

}  // namespace headrace::graph
