// Detectors of the zoo: SSD (Liu et al. 2016) over three backbones.
#pragma once

#include <string_view>

#include "kit/zoo_layers.h"

namespace headrace::kit::zoo {

// Adds the detector with all its outputs. Throws InternalError for a name that is not a detector.
void build_ssd(Net& net, std::string_view name, const Sizes& sizes);

}  // namespace headrace::kit::zoo
