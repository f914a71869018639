#include "graph/label_elimination.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <unordered_set>

namespace headrace::graph {

namespace {

// Chooses the order on the graph of which variables share a factor. Variables that are removed link their neighbours.
class EliminationOrder {
 public:
  EliminationOrder(const LabelFactors& factors, const LabelOptions& options)
      : factors_(factors), options_(options), neighbours_(factors.size.size()), weight_(factors.size.size(), 0) {
    for (const LabelFactors::Factor& factor : factors.factors) link(factor.scope);
  }

  // Returns all variables in their order; nothing when a limit is passed.
  std::optional<std::vector<int32_t>> find() {
    for (int32_t variable = 0; variable < factors_.num_variables(); ++variable) push(variable);
    std::vector<bool> is_done(weight_.size(), false);
    std::vector<int32_t> order, around;
    int64_t operations = 0;
    while (!queue_.empty()) {
      const auto [weight, variable] = queue_.top();
      queue_.pop();
      const auto at = static_cast<size_t>(variable);
      if (is_done[at] || weight != weight_[at]) continue;
      is_done[at] = true;
      around.assign(neighbours_[at].begin(), neighbours_[at].end());
      std::sort(around.begin(), around.end());
      operations += entries_of(around) * factors_.size[at];
      if (entries_of(around) > options_.max_table_entries || operations > options_.max_operations) return {};
      order.push_back(variable);
      remove(variable, around);
    }
    return order;
  }

 private:
  using Queue =
      std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>, std::greater<>>;

  // The logarithm of a size as an integer, so that weights do not depend on the order in which they are summed.
  int64_t log_size(int32_t variable) const {
    return std::llround(std::log2(factors_.size[static_cast<size_t>(variable)]) * 65536) + 1;
  }

  int64_t entries_of(const std::vector<int32_t>& variables) const {
    constexpr int64_t kTooMany = int64_t{1} << 40;
    int64_t entries = 1;
    for (const int32_t variable : variables)
      entries = std::min(entries * factors_.size[static_cast<size_t>(variable)], kTooMany);
    return entries;
  }

  void push(int32_t variable) { queue_.emplace(weight_[static_cast<size_t>(variable)], variable); }

  void add_neighbour(int32_t a, int32_t b) {
    if (neighbours_[static_cast<size_t>(a)].insert(b).second) weight_[static_cast<size_t>(a)] += log_size(b);
  }

  void link(const std::vector<int32_t>& scope) {
    for (size_t i = 0; i < scope.size(); ++i) {
      for (size_t j = i + 1; j < scope.size(); ++j) {
        add_neighbour(scope[i], scope[j]);
        add_neighbour(scope[j], scope[i]);
      }
    }
  }

  void remove(int32_t variable, const std::vector<int32_t>& around) {
    for (const int32_t other : around) {
      neighbours_[static_cast<size_t>(other)].erase(variable);
      weight_[static_cast<size_t>(other)] -= log_size(variable);
    }
    link(around);
    for (const int32_t other : around) push(other);
    neighbours_[static_cast<size_t>(variable)] = {};
  }

  const LabelFactors& factors_;
  const LabelOptions& options_;
  std::vector<std::unordered_set<int32_t>> neighbours_;
  std::vector<int64_t> weight_;  // of the table that removing the variable makes
  Queue queue_;
};

// Adds up the factors of one variable and takes the least over its values. The entries of the table are visited in
// order; a factor is added at the last variable of its scope, so that it is added again only when one of its variables
// changes.
class VariableTable {
 public:
  VariableTable(const std::vector<int32_t>& size, int32_t variable, std::vector<const LabelFactors::Factor*> factors)
      : size_(size), variable_(variable), count_(static_cast<size_t>(size[static_cast<size_t>(variable)])) {
    for (const LabelFactors::Factor* factor : factors)
      scope.insert(scope.end(), factor->scope.begin(), factor->scope.end());
    std::sort(scope.begin(), scope.end());
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    std::erase(scope, variable);
    sums_.assign((scope.size() + 1) * count_, 0);
    for (const LabelFactors::Factor* factor : factors) add_addend(*factor);
  }

  void compute() {
    size_t entries = 1;
    for (const int32_t variable : scope) entries *= static_cast<size_t>(size_[static_cast<size_t>(variable)]);
    table.resize(entries);
    best.resize(entries);
    std::vector<int32_t> values(scope.size(), 0);
    for (size_t depth = 0; depth <= scope.size(); ++depth) add_up(depth);
    for (size_t entry = 0; entry < entries; ++entry) {
      take_least(entry);
      if (entry + 1 == entries) break;
      for (size_t depth = advance(values) + 1; depth <= scope.size(); ++depth) add_up(depth);
    }
  }

  std::vector<int32_t> scope;  // the neighbours, ascending
  std::vector<LabelCost> table;
  std::vector<uint8_t> best;  // by entry: the variable's value

 private:
  struct Addend {
    size_t depth = 0;              // one more than the place of its last variable in the scope
    std::vector<int64_t> step;     // by place in the scope: how far a value is in `costs`
    std::vector<LabelCost> costs;  // the values of the variable that is removed run fastest
    const LabelCost* at = nullptr;
  };

  size_t place_of(int32_t variable) const {
    return static_cast<size_t>(std::lower_bound(scope.begin(), scope.end(), variable) - scope.begin());
  }

  // Makes an addend of a factor, whose table is transposed.
  void add_addend(const LabelFactors::Factor& factor) {
    Addend addend;
    addend.step.assign(scope.size(), 0);
    auto step = static_cast<int64_t>(count_);
    for (size_t j = factor.scope.size(); j-- > 0;) {
      if (factor.scope[j] == variable_) continue;
      const size_t place = place_of(factor.scope[j]);
      addend.depth = std::max(addend.depth, place + 1);
      addend.step[place] = step;
      step *= size_[static_cast<size_t>(factor.scope[j])];
    }
    const auto own =
        static_cast<size_t>(std::find(factor.scope.begin(), factor.scope.end(), variable_) - factor.scope.begin());
    size_t behind = 1;  // entries of the variables behind the removed one
    for (size_t j = own + 1; j < factor.scope.size(); ++j)
      behind *= static_cast<size_t>(size_[static_cast<size_t>(factor.scope[j])]);
    addend.costs.resize(factor.table.size());
    for (size_t i = 0; i < factor.table.size(); ++i) {
      const size_t before = i / (behind * count_), value = i / behind % count_;
      addend.costs[(before * behind + i % behind) * count_ + value] = factor.table[i];
    }
    addends_.push_back(std::move(addend));
    addends_.back().at = addends_.back().costs.data();
  }

  // Sums the addends up to a depth: the sum of the depth above, and those that end here.
  void add_up(size_t depth) {
    LabelCost* sum = sums_.data() + depth * count_;
    if (depth > 0) std::copy_n(sum - count_, count_, sum);
    for (const Addend& addend : addends_) {
      if (addend.depth != depth) continue;
      for (size_t j = 0; j < count_; ++j) sum[j] += addend.at[j];
    }
  }

  void take_least(size_t entry) {
    const LabelCost* sum = sums_.data() + scope.size() * count_;
    LabelCost least = sum[0];
    size_t at = 0;
    for (size_t j = 1; j < count_; ++j) {
      at = sum[j] < least ? j : at;
      least = std::min(least, sum[j]);
    }
    table[entry] = least;
    best[entry] = static_cast<uint8_t>(at);
  }

  // Goes to the next entry and returns the first place whose value changes.
  size_t advance(std::vector<int32_t>& values) {
    size_t place = scope.size();
    for (bool fits = false; !fits;) {
      --place;
      const int32_t count = size_[static_cast<size_t>(scope[place])];
      fits = ++values[place] < count;
      for (Addend& addend : addends_) addend.at += fits ? addend.step[place] : -addend.step[place] * (count - 1);
      if (!fits) values[place] = 0;
    }
    return place;
  }

  const std::vector<int32_t>& size_;
  const int32_t variable_;
  size_t count_;
  std::vector<Addend> addends_;
  std::vector<LabelCost> sums_;  // by depth: of all addends that end there or before, by value
};

// A variable that was removed: its value for all values of those that are removed later.
struct Removed {
  int32_t variable;
  std::vector<int32_t> scope;
  std::vector<uint8_t> best;
};

std::vector<int32_t> values_from(const std::vector<Removed>& removed, const std::vector<int32_t>& size) {
  std::vector<int32_t> values(size.size(), 0);
  for (size_t i = removed.size(); i-- > 0;) {
    size_t entry = 0;
    for (const int32_t other : removed[i].scope)
      entry = entry * static_cast<size_t>(size[static_cast<size_t>(other)]) +
              static_cast<size_t>(values[static_cast<size_t>(other)]);
    values[static_cast<size_t>(removed[i].variable)] = removed[i].best[entry];
  }
  return values;
}

}  // namespace

std::optional<std::vector<int32_t>> eliminate(LabelFactors factors, const LabelOptions& options) {
  const auto order = EliminationOrder(factors, options).find();
  if (!order) return {};
  std::vector<std::vector<size_t>> holders(factors.size.size());
  const auto register_factor = [&](size_t index) {
    for (const int32_t variable : factors.factors[index].scope) holders[static_cast<size_t>(variable)].push_back(index);
  };
  for (size_t i = 0; i < factors.factors.size(); ++i) register_factor(i);
  std::vector<bool> is_live(factors.factors.size(), true);
  std::vector<Removed> removed;
  removed.reserve(order->size());
  for (const int32_t variable : *order) {
    std::vector<size_t> own = std::move(holders[static_cast<size_t>(variable)]);
    std::erase_if(own, [&](size_t index) { return !is_live[index]; });
    std::vector<const LabelFactors::Factor*> sources;
    for (const size_t index : own) sources.push_back(&factors.factors[index]);
    VariableTable sum(factors.size, variable, std::move(sources));
    sum.compute();
    for (const size_t index : own) {
      is_live[index] = false;
      factors.factors[index].table = {};
    }
    removed.push_back({variable, sum.scope, std::move(sum.best)});
    if (sum.scope.empty()) continue;
    factors.factors.push_back({std::move(sum.scope), std::move(sum.table)});
    is_live.push_back(true);
    register_factor(factors.factors.size() - 1);
  }
  return values_from(removed, factors.size);
}

}  // namespace headrace::graph
