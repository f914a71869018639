// The description of an input or output of a program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artifact/location.h"
#include "tensor/data_type.h"

namespace headrace::artifact {

struct TensorSpec {
  std::string name;
  DataType dtype;
  std::vector<int64_t> shape;
  Location location = {};              // where callers hand it over
  std::vector<std::string> dims = {};  // the model's names of its dimensions, "" for one without; empty: none has one
};

}  // namespace headrace::artifact
