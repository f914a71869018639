// The compute form as nodes, for other languages, files and structural equality. C++ code works on the plain structs of
// compute.h.
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

struct ComputeStageNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "tir.ComputeStage";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<ComputeStageNode>& f);
  // The fields of ComputeStage.
  Buffer output;
  Array<PrimVar> axes;
  Array<PrimExpr> place, extents;
  Array<PrimVar> reduce_axes;
  Array<PrimExpr> reduce_extents;
  Combiner combiner = Combiner::none;
  PrimExpr init, value;
  PrimVar reduced;
  PrimExpr epilogue;
  std::string message;
  bool is_layout = false;
};

struct ComputeNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "tir.Compute";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<ComputeNode>& f);
  Array<Buffer> inputs;
  Array<Ref<ComputeStageNode>> stages;
  Array<Buffer> outputs;
};
using ComputeForm = Ref<ComputeNode>;

ComputeForm from_compute(const Compute& compute);
// Returns the form as plain structs, with variables of their own at each call (own_variables.h says why). UserError
// where the form breaks a rule of verify_compute.h.
Compute to_compute(const ComputeForm& form);

}  // namespace headrace::tir
