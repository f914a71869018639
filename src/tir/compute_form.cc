#include "tir/compute_form.h"

#include "tir/own_variables.h"
#include "tir/verify_compute.h"

namespace headrace::tir {

// Binding fields come before the fields that use their variables. Several stages may write one buffer; the first binds
// it.
void ComputeStageNode::fields(FieldList<ComputeStageNode>& f) {
  using Node = ComputeStageNode;
  f.field<&Node::output>("output", {.def_once = true, .optional = true})
      .field<&Node::extents>("extents", {.default_value = Value(Array<PrimExpr>()), .has_default = true})
      .field<&Node::axes>("axes", {.def_once = true})
      .field<&Node::place>("place", {.default_value = Value(Array<PrimExpr>()), .has_default = true})
      .field<&Node::reduce_extents>("reduce_extents", {.default_value = Value(Array<PrimExpr>()), .has_default = true})
      .field<&Node::reduce_axes>("reduce_axes",
                                 {.def_once = true, .default_value = Value(Array<PrimVar>()), .has_default = true})
      .field<&Node::combiner>("combiner", {.default_value = Value(Combiner::none),
                                           .has_default = true,
                                           .doc = "0: no reduction, 1: sum, 2: prod, 3: max, 4: min"})
      .field<&Node::init>("init", {.optional = true})
      .field<&Node::value>("value")
      .field<&Node::reduced>("reduced", {.def_once = true, .optional = true})
      .field<&Node::epilogue>("epilogue", {.optional = true})
      .field<&Node::message>("message", {.default_value = Value(std::string()), .has_default = true})
      .field<&Node::is_layout>("is_layout", {.default_value = Value(false), .has_default = true});
}

void ComputeNode::fields(FieldList<ComputeNode>& f) {
  f.field<&ComputeNode::inputs>("inputs", {.def_recursive = true})
      .field<&ComputeNode::stages>("stages")
      .field<&ComputeNode::outputs>("outputs");
}

static Ref<ComputeStageNode> from_stage(const ComputeStage& stage) {
  auto node = make_object<ComputeStageNode>();
  node->output = stage.output;
  node->axes = Array<PrimVar>(stage.axes);
  node->place = Array<PrimExpr>(stage.place);
  node->extents = Array<PrimExpr>(stage.extents);
  node->reduce_axes = Array<PrimVar>(stage.reduce_axes);
  node->reduce_extents = Array<PrimExpr>(stage.reduce_extents);
  node->combiner = stage.combiner;
  node->init = stage.init;
  node->value = stage.value;
  node->reduced = stage.reduced;
  node->epilogue = stage.epilogue;
  node->message = stage.message;
  node->is_layout = stage.is_layout;
  return node;
}

static ComputeStage to_stage(const ComputeStageNode& node) {
  return {.output = node.output,
          .axes = node.axes.to_vector(),
          .place = node.place.to_vector(),
          .extents = node.extents.to_vector(),
          .reduce_axes = node.reduce_axes.to_vector(),
          .reduce_extents = node.reduce_extents.to_vector(),
          .combiner = node.combiner,
          .init = node.init,
          .value = node.value,
          .reduced = node.reduced,
          .epilogue = node.epilogue,
          .message = node.message,
          .is_layout = node.is_layout};
}

ComputeForm from_compute(const Compute& compute) {
  auto node = make_object<ComputeNode>();
  node->inputs = Array<Buffer>(compute.inputs);
  for (const ComputeStage& stage : compute.stages) node->stages.push_back(from_stage(stage));
  node->outputs = Array<Buffer>(compute.outputs);
  return node;
}

Compute to_compute(const ComputeForm& form) {
  Compute compute{.inputs = form->inputs.to_vector(), .stages = {}, .outputs = form->outputs.to_vector()};
  for (const Ref<ComputeStageNode>& stage : form->stages) {
    if (!stage) throw_user_error("a stage of the compute form is null");
    compute.stages.push_back(to_stage(*stage));
  }
  verify(compute);
  return with_own_variables(std::move(compute));
}

}  // namespace headrace::tir
