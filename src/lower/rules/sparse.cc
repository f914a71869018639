// Rules of sparse tensors. Entries run one after another, because two may name one place.
#include "ops/algorithm/sparse.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using tir::make_seq;
using tir::Stmt;

Stmt sparse_to_dense_rule(const KernelInput& input) {
  const Line &indices = input.inputs[0], &values = input.inputs[1], &out = input.outputs[0];
  const auto axes = static_cast<int64_t>(out.shape.size());
  const int64_t count = axes == 0 ? 0 : indices.size() / axes;
  const PrimExpr rest = make_cast(out.buffer->dtype, input.inputs[2].item(make_int(0)));
  const Stmt fill = each(out.size(), [&](const PrimExpr& i) { return out.set_item(i, rest); });
  const Stmt write = each(count, [&](const PrimExpr& i) {
    std::function<Stmt(int64_t, const PrimExpr&)> place = [&](int64_t axis, const PrimExpr& at) -> Stmt {
      if (axis == axes) return out.set_item(at, values.item(values.shape.empty() ? make_int(0) : i));
      const int64_t size = out.shape[static_cast<size_t>(axis)];
      return with_index(input, indices.item(i * axes + axis), size,
                        [&](const PrimExpr& index) { return place(axis + 1, at * size + index); });
    };
    return place(0, make_int(0));
  });
  return make_seq({fill, write});
}

// The sizes of the new shape, and how far apart the elements of its axes are.
struct NewShape {
  std::vector<PrimExpr> sizes, strides;

  NewShape(const RuleInput& input, const std::vector<PrimExpr>& before) {
    const int64_t count = static_dim(input, input.in_types[2]->shape[0]);
    PrimExpr total = make_int(1), known = make_int(1);
    for (const PrimExpr& size : before) total = total * size;
    for (int64_t i = 0; i < count; ++i) {
      const PrimExpr size = as_index(load(input.inputs[2], {make_int(i)}));
      sizes.push_back(size);
      known = known * make_select(make_binary(BinaryOp::lt, size, make_int(0)), make_int(1), size);
    }
    strides.assign(sizes.size(), make_int(1));
    for (size_t i = sizes.size(); i-- > 0;) {
      sizes[i] = make_select(make_binary(BinaryOp::lt, sizes[i], make_int(0)),
                             floor_div(total, most(known, make_int(1))), sizes[i]);
      if (i + 1 < sizes.size()) strides[i] = strides[i + 1] * sizes[i + 1];
    }
  }
};

Compute sparse_reshape_rule(const RuleInput& input) {
  std::vector<PrimExpr> before;
  for (int64_t i = 0; i < static_dim(input, input.in_types[1]->shape[0]); ++i)
    before.push_back(as_index(load(input.inputs[1], {make_int(i)})));
  const NewShape after(input, before);
  const auto chosen = [](const std::vector<PrimExpr>& values, const PrimExpr& at) {
    PrimExpr result = make_int(1);
    for (size_t k = values.size(); k-- > 0;) {
      const PrimExpr is_it = make_binary(BinaryOp::eq, at, make_int(static_cast<int64_t>(k)));
      result = make_select(is_it, values[k], result);
    }
    return result;
  };
  const Buffer places = input.make_output(0), shape = input.make_output(1);
  const ComputeStage place = map_stage(places, [&](const Index& i) {
    PrimExpr flat = make_int(0);
    for (size_t k = 0; k < before.size(); ++k)
      flat = flat * before[k] + as_index(load(input.inputs[0], {i[0], make_int(static_cast<int64_t>(k))}));
    const PrimExpr part = floor_div(flat, most(chosen(after.strides, i[1]), make_int(1)));
    const PrimExpr is_first = make_binary(BinaryOp::eq, i[1], make_int(0));
    return make_cast(places->dtype,
                     make_select(is_first, part, floor_mod(part, most(chosen(after.sizes, i[1]), make_int(1)))));
  });
  const ComputeStage size =
      map_stage(shape, [&](const Index& i) { return make_cast(shape->dtype, chosen(after.sizes, i[0])); });
  PrimExpr total = make_int(1), new_total = make_int(1);
  for (const PrimExpr& value : before) total = total * value;
  for (const PrimExpr& value : after.sizes) new_total = new_total * value;
  const ComputeStage check =
      check_stage(Array<PrimExpr>{make_int(1)}, "sparse_reshape: the new shape has another number of elements",
                  [&](const Index&) { return make_binary(BinaryOp::eq, total, new_total); });
  return Compute{input.inputs, {check, place, size}, {places, shape}};
}

// Makes body(row, entry, column) for the entries of compressed rows, which are inputs `first` and the two behind it.
Stmt for_each_entry(const KernelInput& input, size_t first, int64_t columns,
                    const std::function<Stmt(const PrimExpr&, const PrimExpr&, const PrimExpr&)>& body) {
  const Line &indices = input.inputs[first + 1], &starts = input.inputs[first + 2];
  const std::string name = input.op.call.as_op()->name;
  return each(starts.size() - 1, [&](const PrimExpr& row) {
    return bind(as_index(starts.item(row)), [&](const PrimExpr& begin) {
      return bind(as_index(starts.item(row + 1)), [&](const PrimExpr& end) {
        const PrimExpr fits = both(make_binary(BinaryOp::ge, begin, make_int(0)),
                                   make_binary(BinaryOp::le, end, make_int(indices.size())));
        const Stmt entries = each(most(end - begin, make_int(0)), [&](const PrimExpr& i) {
          const PrimExpr entry = begin + i;
          return bind(as_index(indices.item(entry)), [&](const PrimExpr& column) {
            return make_seq({tir::make_assert(is_within(column, make_int(0), make_int(columns)),
                                              name + ": a column is out of range"),
                             body(row, entry, column)});
          });
        });
        return make_seq({tir::make_assert(fits, name + ": a row has entries that there are not"), entries});
      });
    });
  });
}

Stmt sparse_dense_rule(const KernelInput& input) {
  const Line &dense = input.inputs[0], &data = input.inputs[1], &out = input.outputs[0];
  const bool is_left = input.attrs<ops::SparseDenseAttrs>().sparse_lhs, has_blocks = data.shape.size() == 3;
  const int64_t height = has_blocks ? data.shape[1] : 1, width = has_blocks ? data.shape[2] : 1;
  const int64_t m = dense.shape[0], k = dense.shape[1], n = m == 0 ? 0 : out.size() / m;
  const DataType dtype = wide_type(out.buffer->dtype);
  return with_scratch("sums", dtype, {out.size()}, [&](const Line& sums) {
    const Stmt clear = each(out.size(), [&](const PrimExpr& i) { return sums.set_item(i, make_const(0, dtype)); });
    const auto add = [&](const PrimExpr& row, const PrimExpr& entry, const PrimExpr& column) {
      return each_index({height, width, m}, [&](const Index& i) {
        const PrimExpr at_row = row * height + i[0];
        const PrimExpr at = is_left ? at_row * m + i[2] : i[2] * n + at_row;
        const PrimExpr x = wide(dense.item(i[2] * k + column * width + i[1])),
                       w = wide(data.item((entry * height + i[0]) * width + i[1]));
        return sums.set_item(at, sums.item(at) + x * w);
      });
    };
    const Stmt products = for_each_entry(input, 1, width == 0 ? 0 : k / width, add);
    const Stmt write = each(
        out.size(), [&](const PrimExpr& i) { return out.set_item(i, make_cast(out.buffer->dtype, sums.item(i))); });
    return make_seq({clear, products, write});
  });
}

Stmt sparse_add_rule(const KernelInput& input) {
  const Line &dense = input.inputs[0], &data = input.inputs[1], &out = input.outputs[0];
  const int64_t n = out.shape[1];
  const auto copy = [](const Line& from, const Line& to) {
    return each(to.size(),
                [&](const PrimExpr& i) { return to.set_item(i, make_cast(to.buffer->dtype, from.item(i))); });
  };
  const auto add_to = [&](const Line& sums) {
    return for_each_entry(input, 1, n, [&](const PrimExpr& row, const PrimExpr& entry, const PrimExpr& column) {
      const PrimExpr at = row * n + column;
      return sums.set_item(at, make_cast(sums.buffer->dtype, wide(sums.item(at)) + wide(data.item(entry))));
    });
  };
  const DataType dtype = out.buffer->dtype;
  if (!dtype.is_float() || wide_type(dtype) == dtype) return make_seq({copy(dense, out), add_to(out)});
  // Sums of float16 and bfloat16 are computed in float32 and rounded once.
  return with_scratch("sums", wide_type(dtype), {out.size()},
                      [&](const Line& sums) { return make_seq({copy(dense, sums), add_to(sums), copy(sums, out)}); });
}

Stmt sparse_transpose_rule(const KernelInput& input) {
  const Line &data = input.inputs[0], &starts = input.inputs[2];
  const Line &out = input.outputs[0], &rows = input.outputs[1], &ends = input.outputs[2];
  const int64_t n = starts.size() - 1;
  const PrimExpr is_whole = both(make_binary(BinaryOp::eq, as_index(starts.item(make_int(0))), make_int(0)),
                                 make_binary(BinaryOp::eq, as_index(starts.item(make_int(n))), make_int(data.size())));
  return with_scratch("next", kIndexType, {n + 1}, [&](const Line& next) {
    const Stmt clear = each(n + 1, [&](const PrimExpr& i) { return next.set_item(i, make_int(0)); });
    const Stmt count = for_each_entry(input, 0, n, [&](const PrimExpr&, const PrimExpr&, const PrimExpr& column) {
      return next.set_item(column + 1, next.item(column + 1) + 1);
    });
    const Stmt sum = each(n, [&](const PrimExpr& i) { return next.set_item(i + 1, next.item(i) + next.item(i + 1)); });
    const Stmt ended =
        each(n + 1, [&](const PrimExpr& i) { return ends.set_item(i, make_cast(ends.buffer->dtype, next.item(i))); });
    const auto move = [&](const PrimExpr& row, const PrimExpr& entry, const PrimExpr& column) {
      return bind(next.item(column), [&](const PrimExpr& at) {
        return make_seq({out.set_item(at, data.item(entry)), rows.set_item(at, make_cast(rows.buffer->dtype, row)),
                         next.set_item(column, at + 1)});
      });
    };
    return make_seq({tir::make_assert(is_whole, "nn.sparse_transpose: sparse_indptr does not name all entries"), clear,
                     count, sum, ended, for_each_entry(input, 0, n, move)});
  });
}

}  // namespace

void register_sparse_rules() {
  set_kernel_rule("sparse_to_dense", sparse_to_dense_rule);
  set_rule("sparse_reshape", sparse_reshape_rule);
  set_kernel_rule("nn.sparse_dense", sparse_dense_rule);
  set_kernel_rule("nn.sparse_add", sparse_add_rule);
  set_kernel_rule("nn.sparse_transpose", sparse_transpose_rule);
}

}  // namespace headrace::lower
