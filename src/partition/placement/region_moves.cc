#include "partition/placement/region_moves.h"

#include <algorithm>
#include <set>
#include <span>

namespace headrace::partition {

namespace {

// A region, or a native call, and the label that it could have at the least estimated cost.
struct Move {
  std::vector<int32_t> nodes = {};  // calls
  int32_t own = kNativeLabel;
  bool is_near = false;               // it has a border that the label problem does not see, or is beside one that has
  std::vector<int64_t> changes = {};  // changes of the cost, by label
  int32_t to = kNativeLabel;
  int64_t change = 0;
};

// The moves from one plan, cheapest first by an estimate in which all other regions stay as they are.
class Moves {
 public:
  Moves(const CostProblem& problem, const std::vector<int32_t>& labels)
      : problem_(problem), regions_(problem.regions_of(labels)), borders_(problem.borders_of(labels, regions_)) {
    unit_.assign(labels.size(), kNone);
    units_.resize(regions_.backend.size());
    add_calls(labels);
    add_pieces(labels);
    add_borders();
    mark_near();
  }

  std::vector<Move> take() {
    std::vector<Move> moves;
    for (Move& move : units_) {
      if (!move.is_near || move.nodes.empty()) continue;
      move.changes[static_cast<size_t>(move.own)] = INT64_MAX;
      const auto least = std::min_element(move.changes.begin(), move.changes.end());
      move.to = static_cast<int32_t>(least - move.changes.begin());
      move.change = *least;
      if (move.change != INT64_MAX) moves.push_back(std::move(move));
    }
    moves.insert(moves.end(), pieces_.begin(), pieces_.end());
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.change < b.change; });
    return moves;
  }

 private:
  // Calls of a region that cannot have the new label become native.
  void add_calls(const std::vector<int32_t>& labels) {
    for (const int32_t node : problem_.undecided_calls()) {
      const auto at = static_cast<size_t>(node);
      unit_[at] = regions_.region[at] == kNone ? static_cast<int32_t>(units_.size()) : regions_.region[at];
      if (regions_.region[at] == kNone) units_.emplace_back();
      Move& unit = units_[static_cast<size_t>(unit_[at])];
      unit.own = labels[at];
      unit.nodes.push_back(node);
      unit.changes.resize(static_cast<size_t>(problem_.num_labels()), 0);
      for (int32_t label = 0; label < problem_.num_labels(); ++label) {
        const int32_t to = problem_.may_have(node, label) ? label : kNativeLabel;
        unit.changes[static_cast<size_t>(label)] += problem_.units(node, to) - problem_.units(node, unit.own);
      }
    }
  }

  // Instances, each by itself: those of the plan are left, and all others taken.
  void add_pieces(const std::vector<int32_t>& labels) {
    const std::vector<int32_t> taken = problem_.pieces().taken(labels);
    for (size_t i = 0; i < problem_.pieces().all().size(); ++i) {
      const Piece& piece = problem_.pieces().all()[i];
      if (piece.label == kNone) continue;
      const bool is_taken = std::binary_search(taken.begin(), taken.end(), static_cast<int32_t>(i));
      Move move{.nodes = piece.nodes, .own = piece.label, .to = is_taken ? kNativeLabel : piece.label};
      for (const int32_t node : piece.nodes)
        move.change += problem_.units(node, move.to) - problem_.units(node, labels[static_cast<size_t>(node)]);
      pieces_.push_back(std::move(move));
    }
  }

  // Returns the region of a node or the unit of a native call; kNone for all else.
  int32_t unit_of(size_t producer, int32_t region) const {
    return region != kNone || producer >= unit_.size() ? region : unit_[producer];
  }

  int64_t price(size_t producer, int32_t from, int32_t to) const {
    return problem_.backend_of(from) == problem_.backend_of(to) ? 0 : problem_.border_units(producer, from, to);
  }

  void add_borders() {
    for (const CostProblem::Border& border : borders_) {
      add_maker(border.producer, unit_of(border.producer, border.region), border);
      add_taker(border.producer, border.taking, border);
    }
    for (const Flow::Use& use : problem_.flow().uses) {  // native calls take values that no region of theirs takes
      if (use.from == kNone || use.to == kNone || region_of(use.to) != kNone) continue;
      const int32_t region = region_of(use.from);
      const int32_t from = region == kNone ? kNativeLabel : problem_.label_of(regions_, region);
      add_taker(static_cast<size_t>(use.from), unit_[static_cast<size_t>(use.to)],
                {.producer = 0, .region = region, .taking = kNone, .from = from, .to = kNativeLabel});
    }
  }
  void add_maker(size_t producer, int32_t unit, const CostProblem::Border& border) {
    for (int32_t label = 0; label < problem_.num_labels(); ++label)
      add(unit, label, price(producer, label, border.to) - price(producer, border.from, border.to));
  }
  void add_taker(size_t producer, int32_t unit, const CostProblem::Border& border) {
    for (int32_t label = 0; label < problem_.num_labels(); ++label)
      add(unit, label, price(producer, border.from, label) - price(producer, border.from, border.to));
  }
  void add(int32_t unit, int32_t label, int64_t change) {
    if (unit == kNone || units_[static_cast<size_t>(unit)].changes.empty()) return;
    units_[static_cast<size_t>(unit)].changes[static_cast<size_t>(label)] += change;
  }

  // Returns which regions have a border that the label problem does not see.
  std::vector<bool> regions_with_hidden_borders() const {
    std::vector<bool> has_hidden(regions_.backend.size(), false);
    std::set<std::pair<size_t, int32_t>> seen;  // producers and labels whose border the label problem has
    for (const CostProblem::Border& border : borders_) {
      if (border.taking == kNone) continue;
      if (border.from != border.to && seen.insert({border.producer, border.to}).second) continue;
      has_hidden[static_cast<size_t>(border.taking)] = true;
      if (border.region != kNone) has_hidden[static_cast<size_t>(border.region)] = true;
    }
    return has_hidden;
  }

  void mark_near() {
    const std::vector<bool> has_hidden = regions_with_hidden_borders();
    const auto is_hidden = [&](int32_t region) { return region != kNone && has_hidden[static_cast<size_t>(region)]; };
    const auto mark = [&](int32_t unit) {
      if (unit != kNone) units_[static_cast<size_t>(unit)].is_near = true;
    };
    for (const CostProblem::Border& border : borders_) {
      if (!is_hidden(border.region) && !is_hidden(border.taking)) continue;
      mark(unit_of(border.producer, border.region));
      mark(border.taking);
    }
    for (const Flow::Use& use : problem_.flow().uses) {
      if (use.from == kNone || use.to == kNone || !is_hidden(region_of(use.from))) continue;
      mark(unit_of(static_cast<size_t>(use.to), region_of(use.to)));
    }
  }
  int32_t region_of(int32_t node) const { return regions_.region[static_cast<size_t>(node)]; }

  const CostProblem& problem_;
  Regions regions_;
  std::vector<CostProblem::Border> borders_;
  std::vector<int32_t> unit_;  // by node: its region, or the number of a native call behind the regions
  std::vector<Move> units_;
  std::vector<Move> pieces_;
};

// Tries moves together, and apart where they do not pay together.
class RegionMover {
 public:
  RegionMover(const CostProblem& problem, std::vector<int32_t>& labels, int64_t plans)
      : problem_(problem), labels_(labels), plans_(plans), cost_(problem.cost_of(labels)) {}

  int64_t run() {
    for (bool again = true; again && plans_ > 0;) again = try_all(Moves(problem_, labels_).take());
    return cost_;
  }

 private:
  // Moves that promise to save are tried together first, all others one by one. Returns whether any was taken.
  bool try_all(const std::vector<Move>& moves) {
    const auto saving = static_cast<size_t>(
        std::count_if(moves.begin(), moves.end(), [](const Move& move) { return move.change < 0; }));
    std::vector<std::span<const Move>> open;  // the last first
    for (size_t i = moves.size(); i > saving; --i) open.push_back(std::span(moves).subspan(i - 1, 1));
    if (saving > 0) open.push_back(std::span(moves).first(saving));
    bool any = false;
    while (!open.empty() && plans_ > 0) {
      const std::span<const Move> some = open.back();
      open.pop_back();
      if (try_moves(some)) {
        any = true;
      } else if (some.size() > 1) {
        open.push_back(some.subspan(some.size() / 2));
        open.push_back(some.first(some.size() / 2));
      }
    }
    return any;
  }

  bool try_moves(std::span<const Move> moves) {
    std::vector<int32_t> labels = labels_;
    for (const Move& move : moves) {
      for (const int32_t node : move.nodes)
        labels[static_cast<size_t>(node)] = problem_.may_have(node, move.to) ? move.to : kNativeLabel;
    }
    problem_.repair(labels);
    --plans_;
    const int64_t cost = problem_.cost_of(labels);
    if (cost >= cost_) return false;
    cost_ = cost;
    labels_ = std::move(labels);
    return true;
  }

  const CostProblem& problem_;
  std::vector<int32_t>& labels_;
  int64_t plans_;
  int64_t cost_;
};

}  // namespace

int64_t move_regions(const CostProblem& problem, std::vector<int32_t>& labels, int64_t plans) {
  return RegionMover(problem, labels, plans).run();
}

}  // namespace headrace::partition
