// Variable elimination: the least sum of factors, exactly, by removing one variable after another. Removing a variable
// replaces the factors that hold it by one table over its neighbours (U. Bertele, F. Brioschi, "Nonserial Dynamic
// Programming", 1972). The order takes the variable whose table is smallest: min-degree, weighted by the sizes.
#pragma once

#include <optional>

#include "graph/label_factors.h"

namespace headrace::graph {

struct Elimination {
  std::vector<int32_t> values;  // by variable
  int64_t operations;           // entries that it added up
};

// Returns values of all variables with the least sum; of several, those that the order meets first, so that the result
// depends only on the factors. Nothing when a table or the number of operations would pass the limits, which is found
// out before any table is made.
std::optional<Elimination> eliminate(LabelFactors factors, const LabelOptions& options);

}  // namespace headrace::graph
