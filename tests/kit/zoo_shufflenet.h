// ShuffleNet V2 (Ma et al. 2018) of the zoo.
#pragma once

#include "kit/zoo_layers.h"

namespace headrace::kit::zoo {

// Returns the scores f32[N,classes] of ShuffleNet V2 with 1.0 times the channels.
Map shufflenet_v2(Net& net, const Sizes& sizes);

}  // namespace headrace::kit::zoo
