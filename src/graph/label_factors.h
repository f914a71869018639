// Label problems (graph/labels.h) as factors: tables over few variables whose sum is the cost.
//
// The variables are the nodes, with the labels that they may have, and further ones with two values. Such a variable
// says whether one price of one producer is paid. It costs the price when it is 1; when it is 0, each consumer that
// wants the class costs the highest price of the class, which is never cheaper. So the least over the variable is the
// price if any consumer wants the class, and 0 otherwise.
#pragma once

#include <span>

#include "graph/labels.h"

namespace headrace::graph {

struct LabelFactors {
  struct Factor {
    std::vector<int32_t> scope;    // variables of at least two values, ascending
    std::vector<LabelCost> table;  // the last variable of the scope runs fastest
  };

  std::vector<int32_t> size;                 // by variable: the number of its values
  std::vector<int32_t> anchor;               // by variable: the node whose cost it belongs to
  std::vector<std::vector<int32_t>> labels;  // by node: the label of each value
  std::vector<Factor> factors;
  LabelCost constant = 0;

  int32_t num_variables() const { return static_cast<int32_t>(size.size()); }
  // Returns the labels of the nodes for values of all variables.
  std::vector<int32_t> labels_of(std::span<const int32_t> values) const;
};

// Returns a problem with the same costs in which the consumers of each shared cost are ascending, each once, and not
// the producer. InternalError as find_labels, for a problem that is not well-formed.
LabelProblem normalized(const LabelProblem& problem);

// Returns the factors of a normalized problem. A shared cost whose table has at most `max_entries` entries is one
// factor; any other one gets variables of its own, so that with 0 no factor has more than two variables.
LabelFactors make_factors(const LabelProblem& problem, int64_t max_entries);

}  // namespace headrace::graph
