// Rules of non-maximum suppression that treats each class separately.
#include "ops/image/class_suppression.h"

#include "lower/rules/rule.h"
#include "lower/rules/sort_loops.h"

namespace headrace::lower {

namespace {

using tir::make_if;
using tir::make_seq;
using tir::Stmt;

// The boxes of one class in one batch, whose scores are line `line`.
struct ClassBoxes {
  const KernelInput& input;
  PrimExpr line, batch;
  int64_t classes, boxes;

  PrimExpr score(const PrimExpr& box) const { return wide(input.inputs[1].item(line * boxes + box)); }
  PrimExpr corner(const PrimExpr& box, int64_t k) const {
    return wide(input.inputs[0].item((batch * boxes + box) * 4 + k));
  }
  PrimExpr low(const PrimExpr& box, int64_t axis) const { return least(corner(box, axis), corner(box, axis + 2)); }
  PrimExpr high(const PrimExpr& box, int64_t axis) const { return most(corner(box, axis), corner(box, axis + 2)); }
  PrimExpr area(const PrimExpr& box) const { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); }
  PrimExpr number(size_t i) const {
    return make_cast(wide_type(input.inputs[0].buffer->dtype), input.inputs[i].item(make_int(0)));
  }
  // Returns whether box a suppresses box b.
  PrimExpr hides(const PrimExpr& a, const PrimExpr& b) const {
    const PrimExpr zero = number_like(0, score(a));
    const auto shared = [&](int64_t axis) {
      const PrimExpr length = least(high(a, axis), high(b, axis)) - most(low(a, axis), low(b, axis));
      return most(zero, length);
    };
    const PrimExpr inner = shared(0) * shared(1), outer = area(a) + area(b) - inner;
    return both(make_binary(BinaryOp::gt, inner, zero), make_binary(BinaryOp::gt, divide(inner, outer), number(3)));
  }
};

// Decides on a box, after `total` boxes of its class were kept. A kept box becomes row `count` of the result.
Stmt look_at(const ClassBoxes& own, const PrimExpr& box, const Line& kept, const Cell& total, const Cell& count,
             const Cell& keeps) {
  const Line& rows = own.input.outputs[0];
  const Stmt compare = each(total.get(), [&](const PrimExpr& j) {
    return bind(kept.item(j),
                [&](const PrimExpr& other) { return make_if(own.hides(box, other), keeps.set(make_int(0))); });
  });
  const PrimExpr most = as_index(own.input.inputs[2].item(make_int(0)));
  const PrimExpr has_no_threshold = make_intrinsic(Intrinsic::isnan, DataType::bool_(), {own.number(4)});
  const PrimExpr is_enough =
      make_binary(BinaryOp::logical_or, has_no_threshold, make_binary(BinaryOp::gt, own.score(box), own.number(4)));
  const PrimExpr counts = both(is_enough, make_binary(BinaryOp::lt, total.get(), most));
  const Stmt keep = make_seq({rows.set_item(count.get() * 3, own.batch),
                              rows.set_item(count.get() * 3 + 1, floor_mod(own.line, make_int(own.classes))),
                              rows.set_item(count.get() * 3 + 2, box), kept.set_item(total.get(), box),
                              total.set(total.get() + 1), count.set(count.get() + 1)});
  const Stmt look =
      make_seq({keeps.set(make_int(1)), compare, make_if(make_binary(BinaryOp::eq, keeps.get(), make_int(1)), keep)});
  return make_if(counts, look);
}

Stmt suppress_class(const ClassBoxes& own, const Cell& count) {
  // A box whose score is NaN is ranked last, and is considered only if there is no threshold.
  const auto ranked = [&](const PrimExpr& box) {
    const PrimExpr score = own.score(box);
    return make_select(make_intrinsic(Intrinsic::isnan, DataType::bool_(), {score}),
                       tir::identity_of(Combiner::max, score->dtype), score);
  };
  const auto is_before = [&](const PrimExpr& i, const PrimExpr& j) {
    return make_binary(BinaryOp::gt, ranked(i), ranked(j));
  };
  return with_order(own.boxes, is_before, [&](const Line& order) {
    return with_scratch("kept", kIndexType, {own.boxes}, [&](const Line& kept) {
      return with_cell(kIndexType, [&](const Cell& total) {
        return with_cell(kIndexType, [&](const Cell& keeps) {
          const Stmt look = each(own.boxes, [&](const PrimExpr& i) {
            return bind(order.item(i),
                        [&](const PrimExpr& box) { return look_at(own, box, kept, total, count, keeps); });
          });
          return make_seq({total.set(make_int(0)), look});
        });
      });
    });
  });
}

Stmt all_class_rule(const KernelInput& input) {
  const Line &scores = input.inputs[1], &rows = input.outputs[0], &total = input.outputs[1];
  const int64_t classes = scores.shape[1], boxes = scores.shape[2];
  const Stmt clear = each(rows.size(), [&](const PrimExpr& i) { return rows.set_item(i, make_int(-1)); });
  if (rows.size() == 0) return total.set_item(make_int(0), make_int(0));
  return with_cell(kIndexType, [&](const Cell& count) {
    const Stmt lines = each(scores.shape[0] * classes, [&](const PrimExpr& line) {
      return bind(floor_div(line, make_int(classes)),
                  [&](const PrimExpr& batch) { return suppress_class({input, line, batch, classes, boxes}, count); });
    });
    return make_seq({clear, count.set(make_int(0)), lines, total.set_item(make_int(0), count.get())});
  });
}

}  // namespace

void register_class_suppression_rules() { set_kernel_rule("vision.all_class_non_max_suppression", all_class_rule); }

}  // namespace headrace::lower
