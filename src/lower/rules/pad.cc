// Rules of padding.
#include "ops/nn/pad.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using ops::Border;
using ops::border_of;

// (before, after) for each axis.
using Widths = std::vector<std::pair<int64_t, int64_t>>;

Widths widths_of(const Array<Shape>& pad_width) {
  Widths widths;
  for (const Shape& pair : pad_width) widths.emplace_back(pair[0], pair[1]);
  return widths;
}

Widths pad_widths(const RuleInput& input) {
  if (input.call.args.size() == 2) return widths_of(input.attrs<ops::PadAttrs>().pad_width);
  const auto values = constant_ints(input, 1);
  if (!values) fail_rule(input, "pad_width is computed by the model; native code needs it to be constant");
  Widths widths;
  for (size_t i = 0; i < values->size(); i += 2) widths.emplace_back((*values)[i], (*values)[i + 1]);
  return widths;
}

// Returns the index of the element that stands at position `at` of an axis of size n, where `at` may be outside the
// axis.
PrimExpr reflected(Border border, const PrimExpr& at, const PrimExpr& n) {
  const PrimExpr zero = make_int(0);
  if (border == Border::edge) return clamp(at, zero, n - 1);
  const int64_t edge = border == Border::symmetric ? 1 : 0;
  const PrimExpr below = make_int(-edge) - at, above = n * 2 - (2 - edge) - at;
  return make_select(make_binary(BinaryOp::lt, at, zero), below,
                     make_select(make_binary(BinaryOp::ge, at, n), above, at));
}

// `value` returns the element outside the data, in any dtype. It is called for constant borders only.
Compute pad_with(const RuleInput& input, const Widths& widths, Border border, const std::function<PrimExpr()>& value) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  return map_rule(input, [&](const Index& i) {
    Index source;
    std::vector<PrimExpr> conditions;
    for (size_t k = 0; k < shape.size(); ++k) {
      const auto& [before, after] = widths[k];
      const PrimExpr at = i[k] - before;
      const bool overhangs = before > 0 || after > 0;
      source.push_back(overhangs && border != Border::constant ? reflected(border, at, shape[k]) : at);
      if (before > 0) conditions.push_back(make_binary(BinaryOp::ge, at, make_int(0)));
      if (after > 0) conditions.push_back(make_binary(BinaryOp::lt, at, shape[k]));
    }
    const PrimExpr element = load(input.inputs[0], source);
    if (border != Border::constant || conditions.empty()) return element;
    return guarded(all_of(conditions), element, make_cast(element->dtype, value()));
  });
}

Compute pad_rule(const RuleInput& input) {
  return pad_with(input, pad_widths(input), border_of(input.attrs<ops::PadAttrs>().pad_mode), [&] {
    const Buffer& value = input.inputs.back();
    return load(value, Index(value->shape.size(), make_int(0)));
  });
}

Compute mirror_pad_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::MirrorPadAttrs>();
  return pad_with(input, widths_of(attrs.pad_width), border_of(attrs.mode), {});
}

}  // namespace

void register_pad_rules() {
  set_rule("nn.pad", pad_rule);
  set_rule("nn.mirror_pad", mirror_pad_rule);
}

}  // namespace headrace::lower
