// Rules of integers of a few bits, and of the product with packed weights.
#include "ops/nn/bitserial.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

PrimExpr low_bits(const PrimExpr& value, int64_t bits) {
  return floor_mod(make_cast(kIndexType, value), make_int(int64_t{1} << bits));
}

PrimExpr weight_value(const PrimExpr& weight, int64_t bits, bool unipolar) {
  const PrimExpr value = low_bits(weight, bits);
  return unipolar ? value * 2 - ((int64_t{1} << bits) - 1) : value;
}

Compute bitpack_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::BitPackAttrs>();
  const size_t rank = input.in_types[0]->shape.size(), pack_axis = normal_axis(attrs.pack_axis, rank),
               bit_axis = normal_axis(attrs.bit_axis, rank + 1);
  const int64_t width = attrs.pack_type.bits();
  const auto bit = [&](const Index& i, const Index& r) {
    Index at;
    for (size_t k = 0; k < rank; ++k) {
      const PrimExpr& index = i[k < bit_axis ? k : k + 1];
      at.push_back(k == pack_axis ? index * width + r[0] : index);
    }
    const PrimExpr element = make_cast(kIndexType, load(input.inputs[0], at));
    const PrimExpr own =
        floor_mod(make_intrinsic(Intrinsic::shift_right, kIndexType, {element, i[bit_axis]}), make_int(2));
    return make_intrinsic(Intrinsic::shift_left, kIndexType, {own, make_int(width - 1) - r[0]});
  };
  return single_stage(input, rounded(reduce_stage(input.make_output(), Combiner::sum, {make_int(width)}, bit)));
}

Compute bitserial_dense_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::BinaryDenseAttrs>();
  const auto term = [&](const Index& i, const Index& r) {
    return low_bits(load(input.inputs[0], {i[0], r[0]}), attrs.data_bits) *
           weight_value(load(input.inputs[1], {i[1], r[0]}), attrs.weight_bits, attrs.unipolar);
  };
  return single_stage(input,
                      rounded(reduce_stage(input.make_output(), Combiner::sum, {input.in_types[0]->shape[1]}, term)));
}

Compute bitserial_conv2d_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::BinaryConv2DAttrs>();
  const ops::Window window = ops::window_of(2, attrs.strides, attrs.padding, {1, 1});
  const ops::ImageAxes image = ops::data_axes(attrs), kernel = ops::kernel_axes(attrs);
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const auto term = [&](const Index& i, const Index& r) {
    const PrimExpr row = i[image.row] * window.strides[0] + r[1] - window.pad_begin[0],
                   column = i[image.column] * window.strides[1] + r[2] - window.pad_begin[1];
    Index from(4, i[0]), tap(4, i[image.channel]);
    from[image.channel] = r[0];
    from[image.row] = row;
    from[image.column] = column;
    tap[kernel.channel] = r[0];
    tap[kernel.row] = r[1];
    tap[kernel.column] = r[2];
    const PrimExpr is_inside =
        both(is_within(row, make_int(0), shape[image.row]), is_within(column, make_int(0), shape[image.column]));
    const PrimExpr x = guarded(is_inside, low_bits(load(input.inputs[0], from), attrs.activation_bits), make_int(0));
    return x * weight_value(load(input.inputs[1], tap), attrs.weight_bits, attrs.unipolar);
  };
  const std::vector<PrimExpr> extents{shape[image.channel], make_int(attrs.kernel_size[0]),
                                      make_int(attrs.kernel_size[1])};
  return single_stage(input, rounded(reduce_stage(input.make_output(), Combiner::sum, extents, term)));
}

Compute dense_pack_rule(const RuleInput& input) {
  const PrimExpr part = input.in_types[1]->shape[2];
  const DataType dtype = input.out_types[0]->dtype;
  const auto term = [&](const Index& i, const Index& r) {
    Index from(i.begin(), i.end() - 1);
    from.push_back(r[0]);
    const PrimExpr x = wide(make_cast(dtype, load(input.inputs[0], from)));
    const Index of_weight{floor_div(i.back(), part), r[0], floor_mod(i.back(), part)};
    return x * wide(make_cast(dtype, load(input.inputs[1], of_weight)));
  };
  const PrimExpr depth = input.in_types[0]->shape.back();
  return single_stage(input, rounded(reduce_stage(input.make_output(), Combiner::sum, {depth}, term)));
}

}  // namespace

void register_bitserial_rules() {
  set_rule("nn.bitpack", bitpack_rule);
  set_rule("nn.bitserial_dense", bitserial_dense_rule);
  set_rule("nn.bitserial_conv2d", bitserial_conv2d_rule);
  set_rule("nn.contrib_dense_pack", dense_pack_rule);
}

}  // namespace headrace::lower
