// Blocks that are stacked to graphs shaped like networks.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace::bench {

// The nodes that each node of a block takes; -1 is the result of the block before.
using Block = std::vector<std::vector<int32_t>>;

// conv, norm, relu, conv, norm, add, relu
inline const Block kResidual{{-1}, {0}, {1}, {2}, {3}, {-1, 4}, {5}};

// Three projections, two of which get scores, softmax, the third times it, projection, add, norm, and two dense layers
// with an activation beside a second add and norm.
inline const Block kAttention{{-1}, {-1}, {-1},     {0},  {1},  {2},  {3, 4}, {6},      {7, 5},
                              {8},  {9},  {-1, 10}, {11}, {12}, {13}, {14},   {12, 15}, {16}};

}  // namespace headrace::bench
