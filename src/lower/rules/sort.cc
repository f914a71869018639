// Rules of ops that sort (a stable merge sort of indices for each line) and that search (binary search).
#include "ops/algorithm/sort.h"

#include "lower/rules/rule.h"
#include "lower/rules/sort_loops.h"

namespace headrace::lower {

using tir::make_if;
using tir::make_seq;
using tir::Stmt;

PrimExpr is_less(const PrimExpr& a, const PrimExpr& b) {
  const PrimExpr less = make_binary(BinaryOp::lt, a, b);
  if (!a->dtype.is_float()) return less;
  const auto is_nan = [](const PrimExpr& x) { return make_intrinsic(Intrinsic::isnan, DataType::bool_(), {x}); };
  return make_binary(BinaryOp::logical_or, less, make_binary(BinaryOp::logical_and, is_nan(b), make_not(is_nan(a))));
}

namespace {

// Merges the sorted runs [begin, middle) and [middle, end) of `src` into `dst`.
Stmt merge(const Line& src, const Line& dst, const PrimExpr& begin, const PrimExpr& middle, const PrimExpr& end,
           const IsBefore& is_before) {
  return with_cell(kIndexType, [&](const Cell& left) {
    return with_cell(kIndexType, [&](const Cell& right) {
      const auto take = [&](const Cell& from, const PrimExpr& k) {
        return make_seq({dst.set_item(begin + k, src.item(from.get())), from.set(from.get() + 1)});
      };
      const Stmt steps = each(end - begin, [&](const PrimExpr& k) {
        // Takes the right one only if it is strictly before the left one, which makes the sort stable.
        const PrimExpr takes_right = guarded(make_binary(BinaryOp::ge, right.get(), end), make_bool(false),
                                             guarded(make_binary(BinaryOp::ge, left.get(), middle), make_bool(true),
                                                     is_before(src.item(right.get()), src.item(left.get()))));
        return bind(takes_right,
                    [&](const PrimExpr& condition) { return make_if(condition, take(right, k), take(left, k)); });
      });
      return make_seq({left.set(begin), right.set(middle), steps});
    });
  });
}

}  // namespace

Stmt with_order(int64_t n, const PrimExpr& count, const IsBefore& is_before,
                const std::function<Stmt(const Line&)>& body) {
  return with_scratch("order", kIndexType, {n}, [&](const Line& first) {
    return with_scratch("merged", kIndexType, {n}, [&](const Line& second) {
      std::vector<Stmt> stmts{each(count, [&](const PrimExpr& i) { return first.set_item(i, i); })};
      const Line *src = &first, *dst = &second;
      for (int64_t width = 1; width < n; width *= 2) {
        const PrimExpr blocks = floor_div(count + (2 * width - 1), make_int(2 * width));
        stmts.push_back(each(blocks, [&](const PrimExpr& block) {
          const PrimExpr begin = block * (2 * width);
          return merge(*src, *dst, begin, least(begin + width, count), least(begin + 2 * width, count), is_before);
        }));
        std::swap(src, dst);
      }
      stmts.push_back(body(*src));
      return make_seq(stmts);
    });
  });
}

Stmt with_order(int64_t n, const IsBefore& is_before, const std::function<Stmt(const Line&)>& body) {
  return with_order(n, make_int(n), is_before, body);
}

namespace {

// Writes the first elements of each sorted line along an axis, as many as the outputs hold. Outputs may be null.
Stmt take_first(const KernelInput& input, size_t axis, bool ascending, const Line* values, const Line* indices) {
  const Line& data = input.inputs[0];
  const AxisSplit split(data.shape, axis), out((values != nullptr ? values : indices)->shape, axis);
  const int64_t work = data.size() * 16;
  if (data.size() == 0 || out.size == 0) return make_seq({});
  return each_parallel(input, split.lines(), work, [&](const PrimExpr& line) {
    const auto element = [&](const PrimExpr& i) { return wide(data.item(split.line_begin(line) + i * split.inner)); };
    const auto is_before = [&](const PrimExpr& i, const PrimExpr& j) {
      return ascending ? is_less(element(i), element(j)) : is_less(element(j), element(i));
    };
    return with_order(split.size, is_before, [&](const Line& order) {
      return each(out.size, [&](const PrimExpr& k) {
        const PrimExpr to = out.line_begin(line) + k * out.inner;
        return bind(order.item(k), [&](const PrimExpr& i) {
          std::vector<Stmt> writes;
          if (values != nullptr)
            writes.push_back(values->set_item(to, data.item(split.line_begin(line) + i * split.inner)));
          if (indices != nullptr) writes.push_back(indices->set_item(to, i));
          return make_seq(writes);
        });
      });
    });
  });
}

KernelRuleFn sort_rule(bool gives_values) {
  return [gives_values](const KernelInput& input) {
    const auto& attrs = input.attrs<ops::ArgsortAttrs>();
    const Line* out = &input.outputs[0];
    return take_first(input, normal_axis(attrs.axis, out->shape.size()), attrs.is_ascend, gives_values ? out : nullptr,
                      gives_values ? nullptr : out);
  };
}

Stmt topk_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::TopKAttrs>();
  const Line* first = &input.outputs.front();
  return take_first(input, normal_axis(attrs.axis, first->shape.size()), attrs.is_ascend,
                    attrs.ret_type == "indices" ? nullptr : first,
                    attrs.ret_type == "values" ? nullptr : &input.outputs.back());
}

Stmt searchsorted_rule(const KernelInput& input) {
  const Line &sequence = input.inputs[0], &values = input.inputs[1], &out = input.outputs[0];
  const bool right = input.attrs<ops::SearchSortedAttrs>().right, is_shared = sequence.shape.size() == 1;
  const int64_t size = sequence.shape.back(), row = values.shape.empty() ? 1 : values.shape.back();
  int64_t halvings = 0;
  while (size >> halvings != 0) ++halvings;
  return each_parallel(input, out.size(), out.size() * (halvings + 1), [&](const PrimExpr& i) {
    const PrimExpr begin = is_shared ? make_int(0) : floor_div(i, make_int(row)) * size;
    return with_cell(kIndexType, [&](const Cell& low) {
      return with_cell(kIndexType, [&](const Cell& high) {
        const Stmt halve = bind(floor_div(low.get() + high.get(), make_int(2)), [&](const PrimExpr& middle) {
          const PrimExpr x = wide(sequence.item(begin + middle)), v = wide(values.item(i));
          return make_if(right ? make_not(is_less(v, x)) : is_less(x, v), low.set(middle + 1), high.set(middle));
        });
        const Stmt steps = each(halvings, [&](const PrimExpr&) {
          return make_if(make_binary(BinaryOp::lt, low.get(), high.get()), halve);
        });
        return make_seq({low.set(make_int(0)), high.set(make_int(size)), steps, out.set_item(i, low.get())});
      });
    });
  });
}

}  // namespace

void register_sort_rules() {
  set_kernel_rule("sort", sort_rule(true));
  set_kernel_rule("argsort", sort_rule(false));
  set_kernel_rule("topk", topk_rule);
  set_kernel_rule("searchsorted", searchsorted_rule);
}

}  // namespace headrace::lower
