// Rules of ops that write to indexed positions. Updates run one after another, because two may write to one position.
#include "ops/algorithm/scatter.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using tir::make_seq;
using tir::Stmt;

Stmt copied(const Line& from, const Line& to) {
  return each(to.size(), [&](const PrimExpr& i) { return to.set_item(i, from.item(i)); });
}

PrimExpr joined(std::string_view mode, const PrimExpr& old, const PrimExpr& update) {
  if (mode == "update") return update;
  const BinaryOp op = mode == "mul"   ? BinaryOp::mul
                      : mode == "min" ? BinaryOp::min
                      : mode == "max" ? BinaryOp::max
                                      : BinaryOp::add;
  return make_binary(op, wide(old), wide(update));
}

using ForEachUpdate = std::function<Stmt(const std::function<Stmt(const PrimExpr& place, const PrimExpr& update)>&)>;

// Computes the mean of each element and its updates, with sums and counts in scratch buffers.
Stmt scatter_means(const KernelInput& input, const ForEachUpdate& updates) {
  const Line &data = input.inputs[0], &out = input.outputs[0];
  const DataType dtype = wide_type(data.buffer->dtype);
  return with_scratch("sums", dtype, {out.size()}, [&](const Line& sums) {
    return with_scratch("counts", kIndexType, {out.size()}, [&](const Line& counts) {
      const Stmt begin = each(out.size(), [&](const PrimExpr& i) {
        return make_seq({sums.set_item(i, data.item(i)), counts.set_item(i, make_int(1))});
      });
      const Stmt add = updates([&](const PrimExpr& place, const PrimExpr& update) {
        return make_seq(
            {sums.set_item(place, sums.item(place) + wide(update)), counts.set_item(place, counts.item(place) + 1)});
      });
      const Stmt end = each(out.size(), [&](const PrimExpr& i) {
        // Divides integers in 64 bits, because the count may overflow their dtype.
        const DataType inner = dtype.is_float() ? dtype : dtype.is_uint() ? DataType::uint(64) : kIndexType;
        return out.set_item(i, divide(make_cast(inner, sums.item(i)), make_cast(inner, counts.item(i))));
      });
      return make_seq({begin, add, end});
    });
  });
}

// Computes sums or products of float16 or bfloat16 in float32, in a scratch buffer, and rounds them once.
Stmt scatter_wide(const KernelInput& input, std::string_view mode, const ForEachUpdate& updates) {
  const Line &data = input.inputs[0], &out = input.outputs[0];
  return with_scratch("wide", wide_type(data.buffer->dtype), {out.size()}, [&](const Line& joint) {
    const Stmt join = updates([&](const PrimExpr& place, const PrimExpr& update) {
      return joint.set_item(place, joined(mode, joint.item(place), update));
    });
    return make_seq({copied(data, joint), join, copied(joint, out)});
  });
}

Stmt scatter(const KernelInput& input, const std::string& mode, const ForEachUpdate& updates) {
  if (mode == "mean") return scatter_means(input, updates);
  const Line& out = input.outputs[0];
  const DataType dtype = out.buffer->dtype;
  if ((mode == "add" || mode == "mul") && dtype.is_float() && wide_type(dtype) != dtype)
    return scatter_wide(input, mode, updates);
  return make_seq({copied(input.inputs[0], out), updates([&](const PrimExpr& place, const PrimExpr& update) {
                     return out.set_item(place, joined(mode, out.item(place), update));
                   })});
}

Stmt scatter_elements_rule(const KernelInput& input) {
  const auto& attrs = input.attrs<ops::ScatterElementsAttrs>();
  const Line &indices = input.inputs[1], &updates = input.inputs[2], &out = input.outputs[0];
  const size_t axis = normal_axis(attrs.axis, out.shape.size());
  return scatter(input, attrs.reduction, [&](const auto& write) {
    return each_index(indices.shape, [&](const Index& i) {
      return with_index(input, indices.at(i), out.shape[axis], [&](const PrimExpr& at) {
        Index place = i;
        place[axis] = at;
        return write(out.offset(place), updates.at(i));
      });
    });
  });
}

Stmt scatter_nd_rule(const KernelInput& input) {
  const Line &indices = input.inputs[1], &updates = input.inputs[2], &out = input.outputs[0];
  const auto depth = static_cast<size_t>(indices.shape[0]);
  const int64_t columns = depth == 0 ? 0 : indices.size() / indices.shape[0];
  int64_t slice = 1;
  for (size_t k = depth; k < out.shape.size(); ++k) slice *= out.shape[k];
  const int64_t count = depth > 0 ? columns : slice == 0 ? 0 : updates.size() / slice;
  return scatter(input, input.attrs<ops::ScatterNDAttrs>().mode, [&](const auto& write) {
    return each(count, [&](const PrimExpr& y) {
      // Builds the loops from the innermost one, which runs over the slice's elements and needs all indices.
      std::function<Stmt(size_t, const PrimExpr&)> place = [&](size_t m, const PrimExpr& at) -> Stmt {
        if (m == depth) {
          return each(slice, [&](const PrimExpr& k) { return write(at * slice + k, updates.item(y * slice + k)); });
        }
        return with_index(input, indices.item(y + static_cast<int64_t>(m) * columns), out.shape[m],
                          [&](const PrimExpr& index) { return place(m + 1, at * out.shape[m] + index); });
      };
      return place(0, make_int(0));
    });
  });
}

Stmt invert_permutation_rule(const KernelInput& input) {
  const Line &data = input.inputs[0], &out = input.outputs[0];
  const int64_t n = out.size();
  return with_scratch("seen", kIndexType, {n}, [&](const Line& seen) {
    const Stmt clear = each(n, [&](const PrimExpr& i) { return seen.set_item(i, make_int(0)); });
    const Stmt invert = each(n, [&](const PrimExpr& i) {
      return bind(as_index(data.item(i)), [&](const PrimExpr& at) {
        const PrimExpr is_new = guarded(is_within(at, make_int(0), make_int(n)),
                                        make_binary(BinaryOp::eq, seen.item(at), make_int(0)), make_bool(false));
        return make_seq({tir::make_assert(is_new, "invert_permutation: data is not a permutation"),
                         seen.set_item(at, make_int(1)), out.set_item(at, i)});
      });
    });
    return make_seq({clear, invert});
  });
}

}  // namespace

void register_scatter_rules() {
  set_kernel_rule("scatter_elements", scatter_elements_rule);
  set_kernel_rule("scatter_nd", scatter_nd_rule);
  set_kernel_rule("invert_permutation", invert_permutation_rule);
}

}  // namespace headrace::lower
