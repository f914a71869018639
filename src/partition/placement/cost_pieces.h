// Pieces: instances of patterns (partition/instances.h) as labels of a cost problem (cost_problem.h).
//
// All nodes of an instance that a plan takes have one label, and two instances of a backend that share no node may have
// the same one. The labels of a problem are: native code, each backend, and then those of instances. A backend has as
// many of the last as its instances need, so that those that share a node have different ones.
#pragma once

#include <map>
#include <set>

#include "partition/instances.h"
#include "partition/placement/op_costs.h"
#include "partition/regions.h"

namespace headrace::partition {

// A body, or the body with some instances as calls, in numbers of the body's nodes. Producers are nodes, then
// variables.
struct BodyView {
  Flow flow;
  std::vector<int32_t> base;                    // by node of `flow`: the body's node, kNone for functions of calls
  std::vector<std::vector<int32_t>> consumers;  // by producer: nodes; an instance is its root
  std::vector<bool> is_result;                  // by node: the result uses it
  std::vector<bool> is_there;                   // by node: it is in the flow
};

struct Piece {
  int32_t backend = 0;              // label of its backend
  int32_t label = kNone;            // kNone: no plan takes it
  int32_t root = kNone;             // its node
  int32_t lead = kNone;             // the call that has its cost: the root, if that is one
  double seconds = 0;               // seconds that its call takes
  std::vector<int32_t> nodes = {};  // those that are gone where it is taken
  std::vector<int32_t> twice = {};  // nodes that it computes, and that others may need, too
};

class Pieces {
 public:
  // Numbers labels from `num_backends` + 1 on.
  Pieces(const InstanceSet& set, const Flow& flow, const OpCosts& costs, const std::vector<std::string>& names);

  const std::vector<Piece>& all() const { return all_; }  // in the order of the instances
  const Instance& instance(size_t piece) const { return set_.all[piece]; }
  // Returns the backend of each label, as a label.
  const std::vector<int32_t>& backends() const { return backends_; }
  // Returns the piece that a node is in by a label; kNone where there is none.
  int32_t at(int32_t node, int32_t label) const;
  // Returns whether some piece computes a node once more for itself.
  bool is_repeated(int32_t node) const { return repeated_.contains(node); }
  // Returns the numbers of the pieces that the labels take.
  std::vector<int32_t> taken(const std::vector<int32_t>& labels) const;
  bool are_whole(const std::vector<int32_t>& labels) const;
  // Gives calls of pieces that are not whole to the backend, or make them native where it does not take them.
  void repair(std::vector<int32_t>& labels, const std::function<bool(int32_t node, int32_t label)>& may_have) const;
  std::vector<const Instance*> instances(const std::vector<int32_t>& pieces) const;

 private:
  void choose_label(Piece& piece, bool is_needed);
  bool is_whole(const Piece& piece, const std::vector<int32_t>& labels) const;

  const InstanceSet& set_;
  const Flow& flow_;
  std::vector<Piece> all_;
  std::vector<int32_t> backends_;
  std::set<int32_t> repeated_;
  std::map<std::pair<int32_t, int32_t>, int32_t> at_;  // by node and label
};

}  // namespace headrace::partition
