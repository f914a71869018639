#include "plan/pipeline/lattice.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace headrace::plan {
namespace {

// SplitMix64 of a number: random enough to tell sets apart by the sum of their members' values.
uint64_t mixed(uint64_t value) {
  value = (value + 1) * 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

class DownsetFinder {
 public:
  DownsetFinder(const SplitGraph& graph, size_t max_downsets)
      : graph_(graph), max_downsets_(max_downsets), words_((static_cast<size_t>(graph.num_units) + 63) / 64) {}

  std::optional<Lattice> run() {
    if (static_cast<size_t>(graph_.num_units) >= max_downsets_) return {};
    add_root();
    for (size_t next = 0; next < found_.size(); ++next) {
      const std::vector<int32_t> ready = std::move(found_[next].ready);
      for (const int32_t unit : ready) add(static_cast<int32_t>(next), unit, ready);
      if (found_.size() > max_downsets_) return {};
    }
    return make_lattice();
  }

 private:
  struct Downset {
    uint64_t key = 0;
    std::vector<int32_t> ready;  // units that could be added
    std::vector<Lattice::Step> steps;
  };

  void add_root() {
    found_.emplace_back();
    members_.assign(words_, 0);
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      if (graph_.inputs[static_cast<size_t>(unit)].empty()) found_[0].ready.push_back(unit);
    }
  }

  bool has(size_t downset, int32_t unit) const {
    return (members_[downset * words_ + static_cast<size_t>(unit) / 64] >> (static_cast<size_t>(unit) % 64) & 1) != 0;
  }

  // Returns whether `downset` is `below` with `unit`.
  bool is_sum(size_t downset, size_t below, int32_t unit) const {
    if (!has(downset, unit)) return false;
    for (size_t word = 0; word < words_; ++word) {
      uint64_t expected = members_[below * words_ + word];
      if (word == static_cast<size_t>(unit) / 64) expected |= uint64_t{1} << (static_cast<size_t>(unit) % 64);
      if (members_[downset * words_ + word] != expected) return false;
    }
    return true;
  }

  // Adds `below` with `unit`, unless it has been found, and the step between the two.
  void add(int32_t below, int32_t unit, const std::vector<int32_t>& ready) {
    uint64_t key = found_[static_cast<size_t>(below)].key + mixed(static_cast<uint64_t>(unit));
    const uint64_t own_key = key;
    for (;; ++key) {  // two sets with one key take neighbouring places
      const auto [place, is_new] = place_of_.try_emplace(key, static_cast<int32_t>(found_.size()));
      if (is_new) break;
      if (!is_sum(static_cast<size_t>(place->second), static_cast<size_t>(below), unit)) continue;
      found_[static_cast<size_t>(place->second)].steps.push_back({below, unit});
      return;
    }
    const size_t made = found_.size();
    found_.push_back({own_key, {}, {{below, unit}}});
    members_.resize((made + 1) * words_);
    std::copy_n(members_.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(below) * words_), words_,
                members_.begin() + static_cast<std::ptrdiff_t>(made * words_));
    members_[made * words_ + static_cast<size_t>(unit) / 64] |= uint64_t{1} << (static_cast<size_t>(unit) % 64);
    find_ready(made, unit, ready);
  }

  void find_ready(size_t downset, int32_t added, const std::vector<int32_t>& ready) {
    std::vector<int32_t>& own = found_[downset].ready;
    for (const int32_t unit : ready) {
      if (unit != added) own.push_back(unit);
    }
    const auto old_size = static_cast<std::ptrdiff_t>(own.size());
    for (const int32_t tensor : graph_.outputs[static_cast<size_t>(added)]) {
      for (const int32_t unit : graph_.tensor_consumers[static_cast<size_t>(tensor)]) {
        const auto inputs = graph_.inputs[static_cast<size_t>(unit)];
        const bool is_ready = std::all_of(inputs.begin(), inputs.end(), [&](int32_t input) {
          return has(downset, graph_.tensor_producer[static_cast<size_t>(input)]);
        });
        if (is_ready && std::find(own.begin() + old_size, own.end(), unit) == own.end()) own.push_back(unit);
      }
    }
  }

  Lattice make_lattice() const {
    Lattice made;
    for (const Downset& downset : found_) {
      made.steps.insert(made.steps.end(), downset.steps.begin(), downset.steps.end());
      made.begins.push_back(static_cast<int64_t>(made.steps.size()));
    }
    return made;
  }

  const SplitGraph& graph_;
  size_t max_downsets_, words_;
  std::vector<Downset> found_;
  std::vector<uint64_t> members_;  // by downset: a bit for each unit
  std::unordered_map<uint64_t, int32_t> place_of_;
};

}  // namespace

void Lattice::append_between(int32_t lower, int32_t upper, std::vector<int32_t>& units) const {
  // The ways down from both meet at 0: what `upper` meets on its way and `lower` does not is the difference.
  std::vector<int32_t> first, second;
  for (int32_t at = upper; at != 0; at = below(at).front().below) first.push_back(below(at).front().unit);
  for (int32_t at = lower; at != 0; at = below(at).front().below) second.push_back(below(at).front().unit);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  std::set_difference(first.begin(), first.end(), second.begin(), second.end(), std::back_inserter(units));
}

std::optional<Lattice> all_downsets(const SplitGraph& graph, int32_t max_downsets) {
  return DownsetFinder(graph, static_cast<size_t>(std::max(max_downsets, 0))).run();
}

Lattice prefixes_of(std::span<const int32_t> order) {
  Lattice made;
  made.begins.push_back(0);
  for (const int32_t unit : order) {
    made.steps.push_back({made.size() - 1, unit});
    made.begins.push_back(static_cast<int64_t>(made.steps.size()));
  }
  return made;
}

}  // namespace headrace::plan
