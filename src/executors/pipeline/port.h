// Ports: the ends of connections between stages, by which requests enter, pass through and leave a pipeline.
#pragma once

#include <cstddef>
#include <string>

#include "artifact/tensor_spec.h"

namespace headrace::executors::pipeline {

// An input or output of a stage or of a pipeline.
struct Port {
  artifact::TensorSpec spec;  // its dtype and shape mean nothing when is_any is set
  bool is_any = false;        // carries any value; what reads it says what it takes

  const std::string& name() const { return spec.name; }
};

// Where the value of a stage's input, or of a pipeline's output, comes from.
struct Source {
  enum class Kind : uint8_t { input, stage, param };
  Kind kind = Kind::input;
  size_t index = 0;  // of the pipeline's input, the stage, or the parameter
  size_t port = 0;   // a stage's output
};

// Returns "float32 (1, 3, 224, 224)", or "any value".
std::string type_text(const Port& port);
// Returns whether a value of `from` may enter `to`: both have the same type, or one of them takes any value.
bool fits(const Port& from, const Port& to);

}  // namespace headrace::executors::pipeline
