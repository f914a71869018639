// CostProblem: the label problem (graph/labels.h) of placement by cost, for one way to split a program into pieces.
#pragma once

#include <map>

#include "graph/labels.h"
#include "partition/extract.h"
#include "partition/op_costs.h"
#include "partition/regions.h"

namespace headrace::partition {

inline constexpr int32_t kNativeLabel = 0;

class CostProblem {
 public:
  // Label kNativeLabel is native code, label i + 1 the backend i of the list. `module` has types and stays alive as
  // long as the problem.
  CostProblem(IRModule module, const OpCosts& costs);

  const IRModule& module() const { return module_; }
  const Flow& flow() const { return flow_; }
  int32_t num_labels() const { return static_cast<int32_t>(names_.size()); }
  // Returns the seconds of a plan by label: of calls, less what joins save, of the borders of regions, and of changes
  // of layout, each by the label of the code that takes them.
  std::vector<double> seconds_by_label(const std::vector<int32_t>& labels) const;
  // Multiplies all seconds of each label by its factor. Call before set_unit.
  void scale(const std::vector<double>& factors);
  // From now on the plan in which calls have these labels costs what it took as a whole. The label problem has the sum
  // of its calls and borders still.
  void set_measured(const std::vector<int32_t>& labels, double seconds);

  // Returns the most seconds that any plan can take, to choose the unit of costs by.
  double most_seconds() const;
  // Makes the label problem, in which a second is `per_second`.
  void set_unit(double per_second);

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
  // Returns the borders of regions, each once.
  std::vector<Border> borders_of(const Regions& regions) const;
  // Returns the same in seconds.
  double seconds_of(const std::vector<int32_t>& labels) const {
    return static_cast<double>(cost_of(labels)) / per_second_;
  }
  // Adds the borders that the regions of these labels have and that the label problem does not see. Returns whether
  // there are any.
  bool add_borders(const std::vector<int32_t>& labels);

  // Returns labels by which each call goes to the first of these that it may have, else to native code.
  std::vector<int32_t> first_of(const std::vector<int32_t>& wanted) const;
  // Returns the backends of the calls that are not native.
  Labels backends_of(const std::vector<int32_t>& labels) const;
  // Returns labels of the nodes by which the calls are on these backends, which take them.
  std::vector<int32_t> labels_of(const Labels& backends) const;

  // A call that costs less where other calls have the same label and are in its region: natively the kernel of its
  // operand computes it.
  struct Join {
    std::vector<const relay::CallNode*> producers = {};  // all that it needs: an operand, then calls before that
    double seconds_saved = 0;
  };
  // Returns the join of this call by a label ("native" or the name of a backend), if the plan in which calls are on
  // these backends has its producers there; null when there is none.
  const Join* join_of(const relay::CallNode& call, const std::string& label, const Labels& backends) const;

 private:
  double seconds(int32_t node, int32_t label) const {
    return seconds_[static_cast<size_t>(node) * names_.size() + static_cast<size_t>(label)];
  }
  void read_costs(const OpCosts& costs);
  void read_uses();
  void read_joins(const OpCosts& costs);
  const Join* find_join(const relay::CallNode& call, int32_t label) const;
  void read_borders(const OpCosts& costs);
  bool is_of_native_conv(size_t producer) const;
  bool is_read_by_conv(size_t producer) const;
  bool is_used_once(const relay::CallNode& producer, int32_t user) const;
  std::vector<const relay::CallNode*> producers_of(const relay::CallNode& producer, int32_t label) const;
  Join join_with(const OpCosts& costs, const relay::CallNode& producer, int32_t node, int32_t label) const;
  const Expr& value_of(size_t producer) const;
  template <typename OnCall, typename OnJoin, typename OnBorder>
  void for_each_part(const std::vector<int32_t>& labels, OnCall&& on_call, OnJoin&& on_join,
                     OnBorder&& on_border) const;
  int32_t table_of(std::vector<graph::LabelCost> table);
  bool is_free(int32_t node) const;
  std::vector<std::string> names_of(const std::vector<int32_t>& labels) const;
  void add_borders_of_values();
  bool is_call(int32_t node) const;
  bool is_lone(size_t producer, int32_t from, int32_t to) const;
  void add_borders_of_lone_calls(size_t producer, std::vector<graph::LabelCost>& prices);
  void add_joins();
  void add_condition(int32_t node, int32_t label, const Join& join, int64_t saved);
  int64_t units_saved(int32_t node, int32_t label, const Join& join) const;

  IRModule module_;
  Flow flow_;
  std::vector<std::string> names_;                     // by label; empty for native code
  std::set<std::string> one_call_;                     // names of backends whose regions have one call each
  std::vector<double> seconds_;                        // by node and label; negative: not allowed
  std::vector<std::vector<int32_t>> consumers_;        // by producer: the nodes of the flow, then variables
  std::vector<Expr> variables_;                        // those that are producers, in their order
  std::vector<bool> is_result_;                        // by node of the flow: the body's result uses it
  std::map<std::pair<int32_t, int32_t>, Join> joins_;  // by the node of the call, and its label
  std::map<std::string, int32_t> nodes_by_name_;       // by kind and place; kNone for several
  // Seconds that a value takes to leave the code of a label and to enter it, by producer and label.
  std::vector<double> leaving_, entering_;
  std::vector<double> region_call_;                      // by label: seconds to call a region with one value
  std::map<std::vector<std::string>, double> measured_;  // seconds of whole plans, by names_of() their labels
  Backends backends_;
  double per_second_ = 0;
  graph::LabelProblem problem_;
  std::map<std::vector<graph::LabelCost>, int32_t> tables_;  // those of the problem, each once
};

}  // namespace headrace::partition
