// CostProblem: the label problem (graph/labels.h) of placement by cost.
#pragma once

#include <map>

#include "graph/labels.h"
#include "partition/extract.h"
#include "partition/placement/cost_pieces.h"
#include "partition/placement/op_costs.h"
#include "partition/regions.h"

namespace headrace::partition {

inline constexpr int32_t kNativeLabel = 0;

class CostProblem {
 public:
  // Label kNativeLabel is native code, label i + 1 the backend i of the list; those behind are of instances of patterns
  // (partition/placement/cost_pieces.h). The set's module has types.
  CostProblem(InstanceSet instances, const OpCosts& costs);
  // Makes the problem of a program without instances.
  CostProblem(const IRModule& module, const OpCosts& costs);
  CostProblem(const CostProblem&) = delete;
  CostProblem& operator=(const CostProblem&) = delete;

  const IRModule& module() const { return instances_.module; }
  const InstanceSet& instances() const { return instances_; }
  const Pieces& pieces() const { return pieces_; }
  const Flow& flow() const { return flow_; }
  int32_t num_labels() const { return static_cast<int32_t>(names_.size()); }
  // Returns the label of the backend, or of native code, that computes what has a label.
  int32_t backend_of(int32_t label) const { return pieces_.backends()[static_cast<size_t>(label)]; }
  // Returns the seconds of a plan by backend: of calls, less what joins save, of the borders of regions, and of changes
  // of layout, each by the label of the code that takes them.
  std::vector<double> seconds_by_backend(const std::vector<int32_t>& labels) const;
  // Multiplies all seconds of native code and of each backend by its factor. Before set_unit.
  void scale(const std::vector<double>& factors);
  // Returns a hash of where a plan has its calls, the same in every process for equal programs and backends.
  std::string hash_of(const std::vector<int32_t>& labels) const;
  // From now on the plan in which calls have these labels costs what it took as a whole. The label problem has the sum
  // of its calls and borders still.
  void set_measured(const std::vector<int32_t>& labels, double seconds);

  // Makes the label problem, in which a second is `per_second`.
  void set_unit(double per_second);
  // Makes it in picoseconds, or in larger units where their sums could pass the range of label costs.
  void choose_unit();
  double seconds_of_units(int64_t units) const { return static_cast<double>(units) / per_second_; }

  // Returns labels of the nodes of the body that cost least in the label problem.
  graph::Labelling solve() const;
  // The nodes of the body come first in it.
  const graph::LabelProblem& label_problem() const { return problem_; }
  // Returns the calls that may have several labels, in the order of the body.
  std::vector<int32_t> undecided_calls() const;
  // Returns the number of plans, at most `most`.
  int64_t num_plans(int64_t most) const;
  bool may_have(int32_t node, int32_t label) const { return seconds(node, label) >= 0; }
  // Returns the cost of a plan: that of its calls, and of the borders of the regions that its labels make.
  int64_t cost_of(const std::vector<int32_t>& labels) const;
  // Returns the cost of one node, without its borders.
  int64_t units(int32_t node, int32_t label) const;
  // Returns the price of handing a value over from a region or native code to another region or native code.
  int64_t border_units(size_t producer, int32_t from, int32_t to) const;

  // A value that a region or native code hands over to another.
  struct Border {
    size_t producer;         // a node of the body, or a number above for a variable
    int32_t region, taking;  // the regions; kNone for native code
    int32_t from, to;        // their labels
  };
  Regions regions_of(const std::vector<int32_t>& labels) const;
  int32_t label_of(const Regions& regions, int32_t region) const;
  // Returns the borders of the regions of these labels, each once. Labels of borders are those of backends.
  std::vector<Border> borders_of(const std::vector<int32_t>& labels, const Regions& regions) const;
  // Returns the same in seconds.
  double seconds_of(const std::vector<int32_t>& labels) const { return seconds_of_units(cost_of(labels)); }
  // Adds the borders that the regions of these labels have and that the label problem does not see. Returns whether
  // there are any.
  bool add_borders(const std::vector<int32_t>& labels);

  // Returns labels by which these instances are taken, if one of the wanted backends has them, and each other call goes
  // to the first wanted one that it may have, else to native code. An instance that is not taken is native.
  std::vector<int32_t> first_of(const std::vector<int32_t>& wanted, const std::vector<int32_t>& instances = {}) const;
  // Makes labels a plan: calls of instances that are not taken whole go to their backend, or are native.
  void repair(std::vector<int32_t>& labels) const;
  bool is_plan(const std::vector<int32_t>& labels) const { return pieces_.are_whole(labels); }

  // The program with the instances of a plan as calls of composite functions.
  struct Split {
    IRModule module;
    Flow flow;
    std::vector<int32_t> base;   // by node of this flow: the node of the problem's body; kNone for functions
    std::vector<int32_t> taken;  // the instances
  };
  Split split_of(const std::vector<int32_t>& labels) const;
  // Returns the backends of the calls of a split that are not native.
  Labels backends_of(const Split& split, const std::vector<int32_t>& labels) const;
  // Returns labels of the nodes by which the calls of a split are on these backends, which take them. An instance that
  // is not on its backend is native.
  std::vector<int32_t> labels_of(const Split& split, const Labels& backends) const;

  // A call that costs less where other calls have the same label and are in its region: natively the kernel of its
  // operand computes it. An instance counts as one call, where it is the operand, and not before that.
  struct Join {
    std::vector<const relay::CallNode*> producers = {};  // all that it needs: an operand, then calls before that
    double seconds_saved = 0;
    int32_t operand = kNone;  // the operand's node
    int32_t form = 0;         // the operand's label: an instance, or its backend
  };
  // Returns the join of a call of the body by a label ("native" or the name of a backend), if the plan has its
  // producers there; null when there is none. `is_piece`: of the instance whose root the call is, and which the plan
  // takes.
  const Join* join_of(const Expr& call, bool is_piece, const std::string& label,
                      const std::vector<int32_t>& labels) const;

 private:
  double seconds(int32_t node, int32_t label) const {
    return seconds_[static_cast<size_t>(node) * names_.size() + static_cast<size_t>(label)];
  }
  using Joins = std::vector<Join>;  // in the order of the operands; at most one of them holds in a plan
  using Views = std::map<std::vector<int32_t>, std::shared_ptr<const BodyView>>;
  struct JoinReader;

  double most_seconds() const;
  size_t backend_index(int32_t label) const { return static_cast<size_t>(backend_of(label)); }
  size_t border_at(size_t producer, int32_t label) const { return producer * num_backends_ + backend_index(label); }
  void read_costs(const OpCosts& costs);
  void read_variables();
  void read_uses(BodyView& view) const;
  std::shared_ptr<const BodyView> view_of(const std::vector<int32_t>& labels) const;
  std::shared_ptr<const BodyView> make_view(const std::vector<int32_t>& taken) const;
  size_t producer_of(const Expr& value) const;
  void read_joins(const OpCosts& costs);
  bool has_producers(const Join& join, int32_t label, const std::vector<int32_t>& labels) const;
  const Join* join_in(const BodyView& view, const Regions& regions, std::pair<int32_t, int32_t> key, const Joins& joins,
                      const std::vector<int32_t>& labels) const;
  void read_borders(const OpCosts& costs);
  void read_borders_of_backend(const OpCosts& costs, size_t backend);
  std::vector<bool> nodes_of_native_convs() const;
  bool is_read_by_conv(size_t producer) const;
  const Expr& value_of(size_t producer) const;
  template <typename OnCall, typename OnJoin, typename OnBorder>
  void for_each_part(const std::vector<int32_t>& labels, OnCall&& on_call, OnJoin&& on_join,
                     OnBorder&& on_border) const;
  int32_t table_of(std::vector<graph::LabelCost> table);
  bool is_free(int32_t node) const;
  std::vector<int32_t> labels_of_calls(const std::vector<int32_t>& labels) const;
  void choose_consumers();
  void add_borders_of_values();
  bool is_call(int32_t node) const;
  bool is_lone(size_t producer, int32_t from, int32_t to) const;
  void add_borders_of_lone_calls(size_t producer, std::vector<graph::LabelCost>& prices);
  void add_lone_pairs(int32_t producer, const std::vector<graph::LabelCost>& lone);
  bool pays_alone(int32_t producer, int32_t from, int32_t consumer, int32_t to) const;
  void add_joins();
  void add_condition(int32_t node, int32_t label, const Join& join, int64_t saved);
  void add_forms(int32_t node, int32_t label, const Joins& joins, int64_t most);
  void add_whole_pieces();
  int64_t units_saved(int32_t node, int32_t label, const Join& join) const;

  InstanceSet instances_;
  Flow flow_;
  Backends backends_;
  size_t num_backends_;             // with native code
  std::vector<std::string> names_;  // by label; empty for native code
  Pieces pieces_;
  std::set<std::string> one_call_;                      // names of backends whose regions have one call each
  std::vector<double> seconds_;                         // by node and label; negative: not allowed
  std::vector<Expr> variables_;                         // those that are producers, in their order
  ObjectMap<size_t> variable_at_;                       // their numbers as producers
  std::shared_ptr<const BodyView> plain_;               // the body without instances
  mutable Views views_;                                 // some of those with instances
  std::map<std::pair<int32_t, int32_t>, Joins> joins_;  // by the node of the call, and its label
  // Seconds that a value takes to leave the code of a backend and to enter it, by producer and backend.
  std::vector<double> leaving_, entering_;
  std::vector<double> region_call_;                  // by backend: seconds to call a region with one value
  std::map<std::vector<int32_t>, double> measured_;  // seconds of whole plans, by the labels of calls
  double per_second_ = 0;
  graph::LabelProblem problem_;
  std::vector<std::vector<int32_t>> consumers_;              // by producer: those that the label problem has
  std::map<std::vector<graph::LabelCost>, int32_t> tables_;  // those of the problem, each once
};

}  // namespace headrace::partition
