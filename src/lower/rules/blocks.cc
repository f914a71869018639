// Rules of ops that move elements between space and batch or channels, in blocks.
#include "ops/tensor/blocks.h"

#include "lower/rules/rule.h"
#include "ops/loops/window.h"

namespace headrace::lower {

namespace {

PrimExpr quotient(const PrimExpr& a, int64_t b) { return floor_div(a, make_int(b)); }
PrimExpr rest(const PrimExpr& a, int64_t b) { return floor_mod(a, make_int(b)); }

ComputeRuleFn sub_pixel_rule(bool to_space) {
  return [to_space](const RuleInput& input) {
    const auto& attrs = input.attrs<ops::SubPixelAttrs>();
    const auto axes = ops::axes_of(attrs.layout, "NCHW");
    const int64_t block = attrs.block_size;
    const int64_t depth = static_dim(input, ops::from_layout(input.out_types[0]->shape, axes)[1]),
                  data_depth = static_dim(input, ops::from_layout(input.in_types[0]->shape, axes)[1]);
    return map_rule(input, [&](const Index& index) {
      const Index i = ops::from_layout(index, axes);
      Index at;
      if (to_space) {
        const PrimExpr place = rest(i[2], block) * block + rest(i[3], block);
        at = {i[0], attrs.mode == "DCR" ? place * depth + i[1] : i[1] * (block * block) + place, quotient(i[2], block),
              quotient(i[3], block)};
      } else {
        const PrimExpr place = quotient(i[1], data_depth);
        at = {i[0], rest(i[1], data_depth), i[2] * block + quotient(place, block), i[3] * block + rest(place, block)};
      }
      return load(input.inputs[0], ops::to_layout(at, axes));
    });
  };
}

// Returns an attribute's number in the result's dtype; saturates for integers.
PrimExpr fill_value(const RuleInput& input, double value) {
  return make_cast(input.out_types[0]->dtype, make_float(value, DataType::float_(64)));
}

Compute space_to_batch_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::SpaceToBatchNDAttrs>();
  const Shape shape = static_shape(input, input.in_types[0]->shape);
  return map_rule(input, [&](const Index& i) {
    Index source = i;
    source[0] = rest(i[0], shape[0]);
    PrimExpr place = quotient(i[0], shape[0]);
    std::vector<PrimExpr> conditions;
    for (size_t k = attrs.block_shape.size(); k-- > 0;) {
      const int64_t block = attrs.block_shape[k], before = attrs.paddings[k][0], after = attrs.paddings[k][1];
      source[k + 1] = i[k + 1] * block + rest(place, block) - before;
      place = quotient(place, block);
      if (before > 0) conditions.push_back(make_binary(BinaryOp::ge, source[k + 1], make_int(0)));
      if (after > 0) conditions.push_back(make_binary(BinaryOp::lt, source[k + 1], make_int(shape[k + 1])));
    }
    return guarded(all_of(conditions), load(input.inputs[0], source), fill_value(input, attrs.pad_value));
  });
}

Compute batch_to_space_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::BatchToSpaceNDAttrs>();
  return map_rule(input, [&](const Index& i) {
    Index source = i;
    PrimExpr place = make_int(0);
    for (size_t k = 0; k < attrs.block_shape.size(); ++k) {
      const PrimExpr y = i[k + 1] + attrs.crops[k][0];
      place = place * attrs.block_shape[k] + rest(y, attrs.block_shape[k]);
      source[k + 1] = quotient(y, attrs.block_shape[k]);
    }
    source[0] = place * input.out_types[0]->shape[0] + i[0];
    return load(input.inputs[0], source);
  });
}

Compute dilate_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::DilateAttrs>();
  return map_rule(input, [&](const Index& i) {
    Index source;
    std::vector<PrimExpr> conditions;
    for (size_t k = 0; k < i.size(); ++k) {
      const int64_t stride = attrs.strides[k];
      if (stride > 1) conditions.push_back(make_binary(BinaryOp::eq, rest(i[k], stride), make_int(0)));
      source.push_back(stride > 1 ? quotient(i[k], stride) : i[k]);
    }
    return guarded(all_of(conditions), load(input.inputs[0], source), fill_value(input, attrs.dilation_value));
  });
}

}  // namespace

void register_block_rules() {
  set_rule("nn.depth_to_space", sub_pixel_rule(true));
  set_rule("nn.space_to_depth", sub_pixel_rule(false));
  set_rule("nn.space_to_batch_nd", space_to_batch_rule);
  set_rule("nn.batch_to_space_nd", batch_to_space_rule);
  set_rule("nn.dilate", dilate_rule);
}

}  // namespace headrace::lower
