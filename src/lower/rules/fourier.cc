// Rules of dft and stft: sums of products with a table of cosines and sines.
#include "ops/algorithm/fourier.h"

#include <cmath>
#include <numbers>

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// Makes the stage of a table [n, 2]: the cosine of 2 pi k / n, and its sine times `sign`.
ComputeStage circle_stage(const Buffer& table, const PrimExpr& n, double sign) {
  return map_stage(table, [&](const Index& i) {
    const PrimExpr angle = divide(make_cast(kReal, i[0]) * real(2 * std::numbers::pi), make_cast(kReal, n));
    return make_select(make_binary(BinaryOp::eq, i[1], make_int(0)), call(Intrinsic::cos, angle),
                       call(Intrinsic::sin, angle) * real(sign));
  });
}

Buffer circle_table(const PrimExpr& n) { return make_stage_buffer("circle", kReal, {n, make_int(2)}); }

Compute dft_rule(const RuleInput& input) {
  const bool inverse = input.attrs<ops::DFTAttrs>().inverse;
  const PrimExpr n = input.in_types[0]->shape.back();
  const Buffer table = circle_table(n);
  Compute compute{input.inputs, {circle_stage(table, n, inverse ? -1 : 1)}, {}};
  for (size_t part = 0; part < 2; ++part) {
    compute.outputs.push_back(input.make_output(part));
    ComputeStage stage =
        reduce_stage(compute.outputs.back(), Combiner::sum, {n}, [&](const Index& i, const Index& r) -> PrimExpr {
          Index at = i;
          at.back() = r[0];
          const PrimExpr angle = floor_mod(r[0] * i.back(), n);
          const PrimExpr c = load(table, {angle, make_int(0)}), s = load(table, {angle, make_int(1)});
          const PrimExpr re = make_cast(kReal, load(input.inputs[0], at)),
                         im = make_cast(kReal, load(input.inputs[1], at));
          return part == 0 ? re * c + im * s : im * c - re * s;
        });
    compute.stages.push_back(finished(
        std::move(stage), [&](const PrimExpr& sum) { return inverse ? divide(sum, make_cast(kReal, n)) : sum; }));
  }
  return compute;
}

Compute stft_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::StftAttrs>();
  const PrimExpr n = make_int(attrs.n_fft), width = input.in_types[1]->shape[0];
  const PrimExpr left = floor_div(n - width, make_int(2));
  const Buffer table = circle_table(n), out = input.make_output();
  ComputeStage stage = reduce_stage(out, Combiner::sum, {width}, [&](const Index& i, const Index& r) {
    const PrimExpr k = left + r[0];
    const PrimExpr x = make_cast(kReal, load(input.inputs[0], {i[0], i[2] * attrs.hop_length + k}));
    return make_cast(kReal, load(input.inputs[1], {r[0]})) * x * load(table, {floor_mod(i[1] * k, n), i[3]});
  });
  const double scale = attrs.normalized ? 1 / std::sqrt(static_cast<double>(attrs.n_fft)) : 1;
  return Compute{
      input.inputs,
      {circle_stage(table, n, -1),
       finished(std::move(stage), [&](const PrimExpr& sum) { return attrs.normalized ? sum * real(scale) : sum; })},
      {out}};
}

}  // namespace

void register_fourier_rules() {
  set_rule("dft", dft_rule);
  set_rule("stft", stft_rule);
}

}  // namespace headrace::lower
