// Rules of ops whose number of results depends on the data. Their buffers have the largest possible size.
#include "ops/algorithm/select.h"

#include "lower/rules/rule.h"
#include "lower/rules/sort_loops.h"

namespace headrace::lower {

namespace {

using tir::make_if;
using tir::make_seq;
using tir::Stmt;

Stmt filled(const Line& line, double value) {
  return each(line.size(), [&](const PrimExpr& i) { return line.set_item(i, make_const(value, line.buffer->dtype)); });
}

Stmt step(const Cell& cell) { return cell.set(cell.get() + 1); }

Stmt argwhere_bounded_rule(const KernelInput& input) {
  const Line &condition = input.inputs[0], &places = input.outputs[0], &count = input.outputs[1];
  const auto rank = static_cast<int64_t>(condition.shape.size());
  return with_cell(kIndexType, [&](const Cell& found) {
    const Stmt look = each_index(condition.shape, [&](const Index& index) {
      const PrimExpr holds = make_binary(BinaryOp::ne, condition.at(index), make_const(0, condition.buffer->dtype));
      std::vector<Stmt> sets;
      for (int64_t k = 0; k < rank; ++k)
        sets.push_back(places.set_item(found.get() * rank + k, index[static_cast<size_t>(k)]));
      sets.push_back(step(found));
      return make_if(holds, make_seq(sets));
    });
    return make_seq({filled(places, -1), found.set(make_int(0)), look, count.set_item(make_int(0), found.get())});
  });
}

// ---- unique

struct UniqueLines {
  const Line &data, &values, &first, &which, &total;
  const Line* counts;
};

// Appends element `at`, the first with its value, to the values found.
Stmt add_unique(const UniqueLines& lines, const PrimExpr& at, const Cell& found) {
  return make_seq({lines.values.set_item(found.get(), lines.data.item(at)), lines.first.set_item(found.get(), at),
                   lines.which.set_item(at, found.get()), step(found)});
}

Stmt count_element(const UniqueLines& lines, const PrimExpr& which) {
  if (lines.counts == nullptr) return make_seq({});
  return bind(make_cast(kIndexType, which), [&](const PrimExpr& at) {
    return lines.counts->set_item(at, lines.counts->item(at) + make_const(1, lines.counts->buffer->dtype));
  });
}

// Finds the values in ascending order: an element that is greater than the one before it begins the next value.
Stmt number_by_value(const UniqueLines& lines, const Line& order, const Cell& found) {
  return each(lines.data.size(), [&](const PrimExpr& i) {
    return bind(order.item(i), [&](const PrimExpr& at) {
      const PrimExpr begins = guarded(make_binary(BinaryOp::eq, i, make_int(0)), make_bool(true),
                                      is_less(wide(lines.data.item(order.item(i - 1))), wide(lines.data.item(at))));
      const Stmt number = bind(begins, [&](const PrimExpr& is_new) {
        return make_if(is_new, add_unique(lines, at, found), lines.which.set_item(at, found.get() - 1));
      });
      return make_seq({number, count_element(lines, found.get() - 1)});
    });
  });
}

// Finds the values in the order of the data. `first_of` gives for each element the first position of its value.
Stmt number_by_place(const UniqueLines& lines, const Line& order, const Line& first_of, const Cell& found) {
  const int64_t n = lines.data.size();
  const Stmt mark = each(n, [&](const PrimExpr& i) {
    return bind(order.item(i), [&](const PrimExpr& at) {
      return bind(guarded(make_binary(BinaryOp::eq, i, make_int(0)), make_int(0), order.item(i - 1)),
                  [&](const PrimExpr& before) {
                    const PrimExpr begins = guarded(make_binary(BinaryOp::eq, i, make_int(0)), make_bool(true),
                                                    is_less(wide(lines.data.item(before)), wide(lines.data.item(at))));
                    return bind(begins, [&](const PrimExpr& is_new) {
                      return first_of.set_item(at, guarded(is_new, at, first_of.item(before)));
                    });
                  });
    });
  });
  const Stmt number = each(n, [&](const PrimExpr& i) {
    const Stmt known = lines.which.set_item(i, lines.which.item(first_of.item(i)));
    const PrimExpr is_new = make_binary(BinaryOp::eq, first_of.item(i), i);
    return make_seq({make_if(is_new, add_unique(lines, i, found), known), count_element(lines, lines.which.item(i))});
  });
  return make_seq({mark, number});
}

Stmt unique_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::UniqueAttrs>();
  const std::vector<Line>& out = input.outputs;
  const UniqueLines lines{input.inputs[0], out[0], out[1], out[2], out[3], attrs.return_counts ? &out[4] : nullptr};
  const int64_t n = lines.data.size();
  std::vector<Stmt> clear;
  for (const Line& line : out) clear.push_back(filled(line, 0));
  if (n == 0) return make_seq(clear);
  const auto is_before = [&](const PrimExpr& i, const PrimExpr& j) {
    return is_less(wide(lines.data.item(i)), wide(lines.data.item(j)));
  };
  const Stmt work = with_order(n, is_before, [&](const Line& order) {
    return with_cell(kIndexType, [&](const Cell& found) {
      const Stmt number = attrs.sorted ? number_by_value(lines, order, found)
                                       : with_scratch("first", kIndexType, {n}, [&](const Line& first_of) {
                                           return number_by_place(lines, order, first_of, found);
                                         });
      return make_seq({found.set(make_int(0)), number, lines.total.set_item(make_int(0), found.get())});
    });
  });
  clear.push_back(work);
  return make_seq(clear);
}

}  // namespace

void register_select_rules() {
  set_kernel_rule("argwhere_bounded", argwhere_bounded_rule);
  set_kernel_rule("unique", unique_rule);
}

}  // namespace headrace::lower
