#include "graph/label_elimination.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <span>
#include <unordered_set>
#include <utility>

namespace headrace::graph {

namespace {

// Chooses the order on the graph whose edges join variables that share a factor. Variables that are removed link their
// neighbours.
class EliminationOrder {
 public:
  EliminationOrder(const LabelFactors& factors, const LabelOptions& options)
      : factors_(factors), options_(options), neighbours_(factors.size.size()), weight_(factors.size.size(), 0) {
    for (const LabelFactors::Factor& factor : factors.factors) link(factor.scope);
  }

  // Returns all variables in their order and the operations of removing them; nothing when a limit is passed.
  std::optional<std::pair<std::vector<int32_t>, int64_t>> find() {
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
    return std::pair(std::move(order), operations);
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
  std::vector<int64_t> weight_;  // size of the table that removing the variable makes
  Queue queue_;
};

// Adds up the factors of one variable and takes the least over its values. The entries of the table are visited in
// order; a factor is added at the last variable of its scope, so that it is added again only when one of its variables
// changes. Keeps the memory of tables that are done for the next ones: fresh pages cost more than the sums.
class VariableTable {
 public:
  explicit VariableTable(const std::vector<int32_t>& size) : size_(size) {}

  void compute(int32_t variable, const std::vector<const LabelFactors::Factor*>& factors) {
    find_scope(variable, factors);
    addends_.resize(std::max(addends_.size(), factors.size()));
    num_addends_ = factors.size();
    for (size_t i = 0; i < factors.size(); ++i) set_addend(addends_[i], *factors[i], variable);
    // Those that end at one place stand together.
    std::sort(addends_.begin(), addends_.begin() + static_cast<std::ptrdiff_t>(num_addends_),
              [](const Addend& a, const Addend& b) { return a.depth < b.depth; });
    first_at_.assign(scope.size() + 2, 0);
    for (size_t i = 0; i < num_addends_; ++i) ++first_at_[addends_[i].depth + 1];
    std::partial_sum(first_at_.begin(), first_at_.end(), first_at_.begin());
    fill();
  }

  // Takes the memory of a table that is not needed any more.
  void keep_memory(std::vector<LabelCost> table_of_factor) {
    if (table_of_factor.capacity() > 0) spare_.push_back(std::move(table_of_factor));
  }

  std::vector<int32_t> scope;  // the neighbours, ascending
  std::vector<LabelCost> table;
  std::vector<uint8_t> best;  // by entry: the variable's value

 private:
  struct Addend {
    size_t depth = 0;              // one more than the place of its last variable in the scope
    std::vector<int64_t> step;     // by place in the scope: how far a value is in the costs
    std::vector<LabelCost> costs;  // transposed: the values of the variable that is removed run fastest
    const LabelCost* at = nullptr;
  };

  int32_t size_of(int32_t variable) const { return size_[static_cast<size_t>(variable)]; }

  void find_scope(int32_t variable, const std::vector<const LabelFactors::Factor*>& factors) {
    count_ = static_cast<size_t>(size_of(variable));
    scope.clear();
    for (const LabelFactors::Factor* factor : factors)
      scope.insert(scope.end(), factor->scope.begin(), factor->scope.end());
    std::sort(scope.begin(), scope.end());
    scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
    std::erase(scope, variable);
    sums_.assign((scope.size() + 1) * count_, 0);
  }

  size_t place_of(int32_t variable) const {
    return static_cast<size_t>(std::lower_bound(scope.begin(), scope.end(), variable) - scope.begin());
  }

  void set_addend(Addend& addend, const LabelFactors::Factor& factor, int32_t variable) {
    addend.depth = 0;
    addend.step.assign(scope.size(), 0);
    auto step = static_cast<int64_t>(count_);
    size_t behind = 1;  // entries of the variables behind the removed one
    for (size_t j = factor.scope.size(); j-- > 0;) {
      if (factor.scope[j] == variable) {
        behind = static_cast<size_t>(step) / count_;
        continue;
      }
      const size_t place = place_of(factor.scope[j]);
      addend.depth = std::max(addend.depth, place + 1);
      addend.step[place] = step;
      step *= size_of(factor.scope[j]);
    }
    addend.at = behind == 1 ? factor.table.data() : transposed(addend.costs, factor.table, behind);
  }

  const LabelCost* transposed(std::vector<LabelCost>& costs, const std::vector<LabelCost>& given, size_t behind) const {
    costs.resize(given.size());
    const size_t block = behind * count_;
    for (size_t begin = 0; begin < given.size(); begin += block) {
      for (size_t i = 0; i < behind; ++i) {
        for (size_t value = 0; value < count_; ++value)
          costs[begin + i * count_ + value] = given[begin + value * behind + i];
      }
    }
    return costs.data();
  }

  // The last variable of the scope runs fastest, in a loop of its own.
  void fill() {
    size_t entries = 1;
    for (const int32_t variable : scope) entries *= static_cast<size_t>(size_of(variable));
    if (!spare_.empty()) {
      table = std::move(spare_.back());
      spare_.pop_back();
    }
    table.resize(entries);
    best.assign(entries, 0);
    std::vector<int32_t> values(scope.size(), 0);
    for (size_t depth = 0; depth < std::max<size_t>(scope.size(), 1); ++depth) add_up(depth);
    const size_t row = scope.empty() ? 1 : static_cast<size_t>(size_of(scope.back()));
    for (size_t entry = 0;;) {
      fill_row(entry, row);
      entry += row;
      if (entry == entries) break;
      for (size_t depth = advance(values) + 1; depth < scope.size(); ++depth) add_up(depth);
    }
  }

  std::span<const Addend> addends_of(size_t depth) const {
    return std::span<const Addend>(addends_).subspan(first_at_[depth], first_at_[depth + 1] - first_at_[depth]);
  }

  // Sums the addends up to a depth: the sum of the depth above, and those that end here.
  void add_up(size_t depth) {
    LabelCost* sum = sums_.data() + depth * count_;
    if (depth == 0) {
      std::fill_n(sum, count_, 0);
    } else {
      std::copy_n(sums_.data() + (depth - 1) * count_, count_, sum);
    }
    for (const Addend& addend : addends_of(depth)) {
      for (size_t j = 0; j < count_; ++j) sum[j] += addend.at[j];
    }
  }

  void fill_row(size_t entry, size_t row) {
    if (scope.empty()) return take_least(entry, sums_.data());
    const size_t last = scope.size();
    const LabelCost* above = sums_.data() + (last - 1) * count_;
    LabelCost* sum = sums_.data() + last * count_;
    const std::span<const Addend> addends = addends_of(last);
    for (size_t i = 0; i < row; ++i) {
      const LabelCost* first = addends[0].at + static_cast<int64_t>(i) * addends[0].step[last - 1];
      for (size_t j = 0; j < count_; ++j) sum[j] = above[j] + first[j];
      for (const Addend& addend : addends.subspan(1)) {
        const LabelCost* more = addend.at + static_cast<int64_t>(i) * addend.step[last - 1];
        for (size_t j = 0; j < count_; ++j) sum[j] += more[j];
      }
      take_least(entry + i, sum);
    }
  }

  void take_least(size_t entry, const LabelCost* sum) {
    LabelCost least = sum[0];
    size_t at = 0;
    for (size_t j = 1; j < count_; ++j) {
      at = sum[j] < least ? j : at;
      least = std::min(least, sum[j]);
    }
    table[entry] = least;
    best[entry] = static_cast<uint8_t>(at);
  }

  // Goes to the next row and returns the first place whose value changes.
  size_t advance(std::vector<int32_t>& values) {
    size_t place = scope.size() - 1;
    for (bool fits = false; !fits;) {
      --place;
      const int32_t count = size_of(scope[place]);
      fits = ++values[place] < count;
      for (size_t i = 0; i < num_addends_; ++i)
        addends_[i].at += fits ? addends_[i].step[place] : -addends_[i].step[place] * (count - 1);
      if (!fits) values[place] = 0;
    }
    return place;
  }

  const std::vector<int32_t>& size_;
  size_t count_ = 0;             // number of the variable's values
  std::vector<Addend> addends_;  // ordered by depth; the memory of more than are used
  size_t num_addends_ = 0;
  std::vector<size_t> first_at_;  // by depth: the first addend
  std::vector<LabelCost> sums_;   // by depth: of all addends that end there or before, by value
  std::vector<std::vector<LabelCost>> spare_;
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

std::optional<Elimination> eliminate(LabelFactors factors, const LabelOptions& options) {
  const auto found = EliminationOrder(factors, options).find();
  if (!found) return {};
  const auto& [order, operations] = *found;
  std::vector<std::vector<size_t>> holders(factors.size.size());
  const auto register_factor = [&](size_t index) {
    for (const int32_t variable : factors.factors[index].scope) holders[static_cast<size_t>(variable)].push_back(index);
  };
  for (size_t i = 0; i < factors.factors.size(); ++i) register_factor(i);
  std::vector<bool> is_live(factors.factors.size(), true);
  std::vector<Removed> removed;
  removed.reserve(order.size());
  VariableTable sum(factors.size);
  for (const int32_t variable : order) {
    std::vector<size_t> own = std::move(holders[static_cast<size_t>(variable)]);
    std::erase_if(own, [&](size_t index) { return !is_live[index]; });
    std::vector<const LabelFactors::Factor*> sources;
    for (const size_t index : own) sources.push_back(&factors.factors[index]);
    sum.compute(variable, sources);
    for (const size_t index : own) {
      is_live[index] = false;
      sum.keep_memory(std::exchange(factors.factors[index].table, {}));
    }
    removed.push_back({variable, sum.scope, std::move(sum.best)});
    if (sum.scope.empty()) continue;
    factors.factors.push_back({sum.scope, std::move(sum.table)});
    is_live.push_back(true);
    register_factor(factors.factors.size() - 1);
  }
  return Elimination{values_from(removed, factors.size), operations};
}

}  // namespace headrace::graph
