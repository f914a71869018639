// The rule of image.dilation2d.
#include "ops/image/dilation.h"

#include "lower/rules/window.h"

namespace headrace::lower {

namespace {

Compute dilation_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::Dilation2DAttrs>();
  const Layout layout = Layout::parse(attrs.data_layout), kernel_layout = Layout::parse(attrs.kernel_layout);
  const auto kernel = whole_dims(input.in_types[1], kernel_layout, ops::kDilationKernel);
  const auto out = whole_dims(input.out_types[0], layout, ops::kDilationData);
  const DataType dtype = wide_type(input.out_types[0]->dtype);
  const auto converted = [dtype](const PrimExpr& value) { return make_cast(dtype, value); };
  const WindowedData data(input, {.data = input.inputs[0],
                                  .layout = layout,
                                  .window = ops::window_of(2, ops::spread(attrs.strides, 2), attrs.padding,
                                                           ops::spread(attrs.dilations, 2)),
                                  .taps = {static_dim(input, kernel[1]), static_dim(input, kernel[2])},
                                  .count = {out.begin() + 2, out.end()},
                                  .fill = make_const(0, dtype),
                                  .convert = converted});
  WindowReadPtr windows;
  ComputeStage stage =
      reduce_stage(input.make_output(), Combiner::max, data.tap_extents(), [&](const Index& i, const Index& tap) {
        const auto at = axis_indices(layout, ops::kDilationData, i);
        const PrimExpr weight =
            converted(load_by_letters(input.inputs[1], kernel_layout, ops::kDilationKernel, {at[1], tap[0], tap[1]}));
        windows = data.read(at[0], at[1], whole({at.begin() + 2, at.end()}), tap, 0);
        return windows->read + weight;
      });
  stage.windows = windows;
  return single_stage(input, rounded(std::move(stage)));
}

}  // namespace

void register_dilation_rules() { set_rule("image.dilation2d", dilation_rule); }

}  // namespace headrace::lower
