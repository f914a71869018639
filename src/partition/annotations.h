// Reads and writes compiler_begin and compiler_end (ops/tensor/compiler_annotation.h), which enclose parts of a body:
// values enter a part through compiler_begin and leave it through compiler_end.
#pragma once

#include "partition/regions.h"

namespace headrace::partition {

// The compiler of parts that stay in the program, as AnnotateTarget writes them.
inline constexpr const char* kDefaultCompiler = "default";

// A body without its annotations.
struct Annotated {
  Flow flow;
  std::vector<int32_t> part;          // by node of the flow; kNone outside of all
  std::vector<std::string> compiler;  // by part
};

// Reads and removes the annotations of a body. A part is what a compiler_end closes, and all that leads there without
// an annotation in between. A part that has only some of its annotations is completed: it takes every input that comes
// from outside, and gives every value that is used outside. A part that reaches into another scope, such as the
// branches of an `if`, ends there. UserError at the annotation for: a part with compiler_begin and no compiler_end, or
// with compiler_end and only inputs that none opens; different compilers around one part; an annotation that encloses
// no computation; what a part cannot hold (region_fault).
Annotated read_annotations(const Expr& body);

// Reads a body as read_annotations() does; returns nothing when it has no annotation.
std::optional<Annotated> find_annotations(const Expr& body);

// Returns the flow's body with annotations on every edge that enters or leaves a part.
Expr write_annotations(const Flow& flow, const std::vector<int32_t>& part, const std::vector<std::string>& compiler);

}  // namespace headrace::partition
