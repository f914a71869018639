#include "ops/image/class_suppression.h"

#include <algorithm>
#include <numeric>

#include "arith/canonical.h"
#include "ops/loops/element.h"
#include "ops/loops/index_value.h"
#include "ops/families.h"
#include "relay/expr.h"

namespace headrace::ops {

void AllClassNonMaximumSuppressionAttrs::fields(FieldList<AllClassNonMaximumSuppressionAttrs>& f) {
  f.field<&AllClassNonMaximumSuppressionAttrs::output_format>(
      "output_format", {.default_value = "onnx", .has_default = true, .doc = "onnx"});
}

namespace {

constexpr DataType kLong = DataType::int_(64);

void check_scalar(const RelationInput& input, size_t i, bool is_float) {
  const TensorType type = input.tensor(i);
  const bool fits = type && type->shape.empty() && (is_float ? type->dtype.is_float() : type->dtype.is_int());
  if (type && !fits)
    input.fail(fmt::format("{} must be {} scalar, got {}", input.call.as_op()->arguments[i].name,
                           is_float ? "a float" : "an integer", show(type)));
}

Type relate_all_class(const RelationInput& input) {
  const auto& attrs = input.call.attrs_as<AllClassNonMaximumSuppressionAttrs>();
  if (attrs.output_format != "onnx")
    input.fail(fmt::format("output_format is '{}', expected onnx", attrs.output_format));
  const TensorType boxes = input.tensor(0), scores = input.tensor(1);
  check_scalar(input, 2, false);
  check_scalar(input, 3, true);
  check_scalar(input, 4, true);
  if (!boxes || !scores) return {};
  if (boxes->shape.size() != 3 || !boxes->dtype.is_float() || arith::is_unequal(boxes->shape[2], make_int(4)))
    input.fail(fmt::format("boxes must be floats [batch, boxes, 4], got {}", show(boxes)));
  check_same_dtype(input, boxes, scores, "scores");
  if (scores->shape.size() != 3 || arith::is_unequal(scores->shape[0], boxes->shape[0]) ||
      arith::is_unequal(scores->shape[2], boxes->shape[1]))
    input.fail(fmt::format("scores must be [batch, classes, boxes] for {}, got {}", show(boxes), show(scores)));
  return make_tuple_type({make_tensor_type(Array<PrimExpr>{arith::product(scores->shape), make_int(3)}, kLong),
                          make_tensor_type(Array<PrimExpr>{make_int(1)}, kLong)});
}

// A box by two of its corners, whichever.
template <typename C>
struct Corners {
  C low[2], high[2];
  template <typename T>
  Corners(const Elements<T>& x, int64_t at) {
    for (int64_t k = 0; k < 2; ++k) {
      low[k] = std::min(x[at + k], x[at + k + 2]);
      high[k] = std::max(x[at + k], x[at + k + 2]);
    }
  }
  C area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

template <typename C>
bool overlaps(const Corners<C>& a, const Corners<C>& b, C threshold) {
  C both = 1;
  for (size_t k = 0; k < 2; ++k) both *= std::max(C{0}, std::min(a.high[k], b.high[k]) - std::max(a.low[k], b.low[k]));
  const C either = a.area() + b.area() - both;
  return both > 0 && both / either > threshold;
}

// Returns the boxes of one class that are kept, the highest score first.
template <typename T>
std::vector<int64_t> kept_boxes(const EvalInput& input, int64_t first_box, int64_t first_score, int64_t boxes) {
  using C = Compute<T>;
  const Elements<T> corners(input.args[0]), scores(input.args[1]);
  const int64_t most = index_at(input.args[2], 0);
  const C iou = static_cast<C>(element_as_double(input.args[3].tensor(), 0)),
          least = static_cast<C>(element_as_double(input.args[4].tensor(), 0));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < boxes; ++i) {
    if (std::isnan(least) || scores[first_score + i] > least) order.push_back(i);
  }
  const auto rank = [&](int64_t i) {
    const C score = scores[first_score + i];
    return std::isnan(score) ? -std::numeric_limits<C>::infinity() : score;
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return rank(i) > rank(j); });
  std::vector<int64_t> kept;
  for (const int64_t i : order) {
    if (std::ssize(kept) >= most) break;
    input.spend(std::ssize(kept));
    const auto hides = [&](int64_t j) {
      return overlaps<C>(Corners<C>(corners, (first_box + i) * 4), Corners<C>(corners, (first_box + j) * 4), iou);
    };
    if (std::none_of(kept.begin(), kept.end(), hides)) kept.push_back(i);
  }
  return kept;
}

std::vector<NDArray> eval_all_class(const EvalInput& input) {
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  const Shape& shape = input.args[1].shape();
  for (int64_t i = 0; i < outs[0].num_elements(); ++i) set_element_int(outs[0].tensor(), i, -1);
  int64_t count = 0;
  dispatch_float(input.args[0].dtype(), [&]<typename T>() {
    for (int64_t line = 0; line < shape[0] * shape[1]; ++line) {
      const int64_t batch = line / shape[1];
      for (const int64_t box : kept_boxes<T>(input, batch * shape[2], line * shape[2], shape[2])) {
        const int64_t row[3] = {batch, line % shape[1], box};
        for (int64_t k = 0; k < 3; ++k) set_element_int(outs[0].tensor(), count * 3 + k, row[k]);
        ++count;
      }
    }
  });
  set_element_int(outs[1].tensor(), 0, count);
  return outs;
}

}  // namespace

Expr all_class_non_max_suppression(Expr boxes, Expr scores, Expr max_output_boxes_per_class, Expr iou_threshold,
                                   Expr score_threshold, Span span) {
  return call_with<AllClassNonMaximumSuppressionAttrs>(
      "vision.all_class_non_max_suppression",
      {std::move(boxes), std::move(scores), std::move(max_output_boxes_per_class), std::move(iou_threshold),
       std::move(score_threshold)},
      std::move(span), [](AllClassNonMaximumSuppressionAttrs&) {});
}

void register_class_suppression_ops() {
  OpBuilder(
      "vision.all_class_non_max_suppression",
      "Of each class, the highest score first, the boxes that score above score_threshold (NaN: all of them, NaN "
      "scores "
      "with the least) and overlap no kept one by more than iou_threshold, at most max_output_boxes_per_class: boxes "
      "f[B,N,4] (two corners), scores f[B,K,N] -> "
      "(int64[B * K * N, 3] batch, class and box, -1 behind them; int64[1] how many). As ONNX NonMaxSuppression-11.")
      .arg("boxes", "Tensor", "f[B, N, 4]: two corners of each box")
      .arg("scores", "Tensor", "f[B, K, N], of the same dtype: the score of each box in each class")
      .arg("max_output_boxes_per_class", "Tensor", "int[]: how many boxes of a class are kept at most")
      .arg("iou_threshold", "Tensor",
           "f[]: kept boxes of a class overlap by no more, as a part of what they cover together")
      .arg("score_threshold", "Tensor", "f[]: a kept box has a higher score; NaN: any score")
      .attrs<AllClassNonMaximumSuppressionAttrs>()
      .relation(relate_all_class)
      .fusion(FusionKind::opaque)
      .level(5)
      .eval(eval_all_class);
}

}  // namespace headrace::ops
