// Ops that say which compiler computes a part of a program. AnnotateTarget (partition/annotate.h) writes them, users
// write them by hand, PartitionGraph (partition/extract.h) makes functions of what they enclose and removes them:
//
//   %0 = annotation.compiler_begin(%x, compiler="gpu");
//   %1 = exp(%0);
//   annotation.compiler_end(%1, compiler="gpu")
//
// Both give their argument, which may be of any type, as it is.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct CompilerAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.CompilerAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<CompilerAttrs>& f);
  std::string compiler;
};

Attrs compiler_attrs(std::string compiler);
// Makes the annotation where a value enters a part that `compiler` computes, or leaves it.
Expr compiler_begin(Expr data, std::string compiler, Span span = {});
Expr compiler_end(Expr data, std::string compiler, Span span = {});

}  // namespace headrace::ops
