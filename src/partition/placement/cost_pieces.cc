#include "partition/placement/cost_pieces.h"

#include <algorithm>
#include <set>

#include "graph/labels.h"
#include "partition/decision.h"

namespace headrace::partition {

namespace {

// So many labels of instances has a backend at most, beside those that the plans made without costs need.
constexpr int32_t kMostLabels = 8;
// Tables of label problems have the square of this number of entries.
constexpr size_t kMostLabelsOfAll = 64;

Piece read_nodes(const Instance& one, const Flow& flow) {
  Piece piece{.root = flow.find(one.root)};
  std::set<const Object*> gone;
  for (const Expr& part : one.inside) gone.insert(part.object());
  for (const Expr& part : one.parts) {
    const int32_t node = flow.find(part);
    if (node == kNone) continue;
    (gone.contains(part.object()) ? piece.nodes : piece.twice).push_back(node);
    if (gone.contains(part.object()) && piece.lead == kNone && part.is<relay::CallNode>()) piece.lead = node;
  }
  return piece;
}

// Each composite function is of one backend at most.
void read_cost(Piece& piece, const Instance& one, const OpCosts& costs, const std::vector<std::string>& names) {
  const auto& call = *one.call.as<relay::CallNode>();
  if (!why_in_no_region(call).empty()) return;
  const std::vector<LabelSeconds> ways = costs.of(call);
  if (ways.size() < 2) return;
  const auto name = std::find(names.begin() + 1, names.end(), ways[1].label);
  piece.backend = static_cast<int32_t>(name - names.begin());
  piece.seconds = ways[1].seconds;
}

}  // namespace

Pieces::Pieces(const InstanceSet& set, const Flow& flow, const OpCosts& costs, const std::vector<std::string>& names)
    : set_(set), flow_(flow) {
  for (size_t label = 0; label < names.size(); ++label) backends_.push_back(static_cast<int32_t>(label));
  std::set<int32_t> needed(set.of_list.begin(), set.of_list.end());
  for (const auto& alone : set.of_backend) needed.insert(alone.begin(), alone.end());
  for (const Instance& one : set.all) {
    Piece piece = read_nodes(one, flow);
    if (piece.lead != kNone) read_cost(piece, one, costs, names);
    if (piece.backend != 0) choose_label(piece, needed.contains(static_cast<int32_t>(all_.size())));
    if (piece.label != kNone) repeated_.insert(piece.twice.begin(), piece.twice.end());
    for (const int32_t node : piece.nodes) {
      if (piece.label != kNone) at_[{node, piece.label}] = static_cast<int32_t>(all_.size());
    }
    all_.push_back(std::move(piece));
  }
}

// Takes the first label of the backend that no node of the piece has for another one, or a new one.
void Pieces::choose_label(Piece& piece, bool is_needed) {
  int32_t count = 0;
  for (size_t i = 0; i < backends_.size(); ++i) {
    const auto label = static_cast<int32_t>(i);
    if (backends_[i] != piece.backend || label == piece.backend) continue;
    ++count;
    const auto is_free = [&](int32_t node) { return !at_.contains({node, label}); };
    if (!std::all_of(piece.nodes.begin(), piece.nodes.end(), is_free)) continue;
    piece.label = label;
    return;
  }
  if (!is_needed && (count >= kMostLabels || backends_.size() >= kMostLabelsOfAll)) return;
  piece.label = static_cast<int32_t>(backends_.size());
  backends_.push_back(piece.backend);
}

int32_t Pieces::at(int32_t node, int32_t label) const {
  if (backends_[static_cast<size_t>(label)] == label) return kNone;
  const auto found = at_.find({node, label});
  return found == at_.end() ? kNone : found->second;
}

bool Pieces::is_whole(const Piece& piece, const std::vector<int32_t>& labels) const {
  return std::all_of(piece.nodes.begin(), piece.nodes.end(), [&](int32_t node) {
    return labels[static_cast<size_t>(node)] == piece.label || !flow_.node(node).is<relay::CallNode>();
  });
}

std::vector<int32_t> Pieces::taken(const std::vector<int32_t>& labels) const {
  std::vector<int32_t> taken;
  for (size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].label != kNone && labels[static_cast<size_t>(all_[i].root)] == all_[i].label &&
        is_whole(all_[i], labels))
      taken.push_back(static_cast<int32_t>(i));
  }
  return taken;
}

bool Pieces::are_whole(const std::vector<int32_t>& labels) const {
  for (const auto& [key, piece] : at_) {
    const auto& [node, label] = key;
    if (labels[static_cast<size_t>(node)] == label && flow_.node(node).is<relay::CallNode>() &&
        !is_whole(all_[static_cast<size_t>(piece)], labels))
      return false;
  }
  return true;
}

void Pieces::repair(std::vector<int32_t>& labels, const std::function<bool(int32_t, int32_t)>& may_have) const {
  const std::vector<int32_t> before = labels;
  for (const auto& [key, number] : at_) {
    const auto& [node, label] = key;
    const Piece& piece = all_[static_cast<size_t>(number)];
    int32_t& now = labels[static_cast<size_t>(node)];
    const bool is_call = flow_.node(node).is<relay::CallNode>();
    if (is_whole(piece, before)) {
      now = label;
    } else if (now == label) {
      now = is_call && may_have(node, piece.backend) ? piece.backend : 0;
    }
  }
}

std::vector<const Instance*> Pieces::instances(const std::vector<int32_t>& pieces) const {
  std::vector<const Instance*> instances;
  for (const int32_t piece : pieces) instances.push_back(&set_.all[static_cast<size_t>(piece)]);
  return instances;
}

}  // namespace headrace::partition
