// DenseNet (Huang et al. 2016) of the zoo.
#pragma once

#include "kit/zoo_layers.h"

namespace headrace::kit::zoo {

// Returns the scores f32[N,classes] of DenseNet-121.
Map densenet121(Net& net, const Sizes& sizes);

}  // namespace headrace::kit::zoo
