#include "ops/algorithm/sort.h"

#include <bit>
#include <numeric>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/positions.h"
#include "relay/expr.h"

namespace headrace::ops {

void ArgsortAttrs::fields(FieldList<ArgsortAttrs>& f) {
  f.field<&ArgsortAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the axis to sort along"})
      .field<&ArgsortAttrs::is_ascend>("is_ascend",
                                       {.default_value = true, .has_default = true, .doc = "the least first"})
      .field<&ArgsortAttrs::dtype>("dtype", {.default_value = "int32",
                                             .has_default = true,
                                             .doc = "the dtype of indices; sort, which gives none, ignores it"});
}

void TopKAttrs::fields(FieldList<TopKAttrs>& f) {
  f.field<&TopKAttrs::k>("k", {.default_value = 1, .has_default = true, .doc = "how many; below 1: all"})
      .field<&TopKAttrs::axis>("axis", {.default_value = -1, .has_default = true, .doc = "the axis to choose along"})
      .field<&TopKAttrs::ret_type>("ret_type",
                                   {.default_value = "both", .has_default = true, .doc = "both, values or indices"})
      .field<&TopKAttrs::is_ascend>(
          "is_ascend", {.default_value = false, .has_default = true, .doc = "the least ones, the least first"})
      .field<&TopKAttrs::dtype>("dtype",
                                {.default_value = "int32", .has_default = true, .doc = "the dtype of the indices"});
}

void SearchSortedAttrs::fields(FieldList<SearchSortedAttrs>& f) {
  f.field<&SearchSortedAttrs::right>(
       "right", {.default_value = false, .has_default = true, .doc = "after equal elements in place of before them"})
      .field<&SearchSortedAttrs::dtype>(
          "dtype", {.default_value = "int32", .has_default = true, .doc = "the dtype of the result"});
}

namespace {

void check_index_dtype(const RelationInput& input, DataType dtype) {
  if (!(dtype.is_int() || dtype.is_uint() || dtype.is_float()) || !dtype.is_scalar())
    input.fail(fmt::format("dtype of indices must be numbers, got {}", dtype));
}

Type relate_argsort(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto& attrs = input.call.attrs_as<ArgsortAttrs>();
  check_index_dtype(input, attrs.dtype);
  if (!data) return {};
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  check_positions(input, attrs.dtype, data->shape[axis], kAskForInt64);
  return make_tensor_type(data->shape, attrs.dtype);
}

Type relate_sort(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (data) normal_axis(input, input.call.attrs_as<ArgsortAttrs>().axis, data->shape.size());
  return data;
}

Type relate_topk(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto& attrs = input.call.attrs_as<TopKAttrs>();
  check_index_dtype(input, attrs.dtype);
  if (attrs.ret_type != "both" && attrs.ret_type != "values" && attrs.ret_type != "indices")
    input.fail(fmt::format("ret_type is '{}', expected both, values or indices", attrs.ret_type));
  if (!data) return {};
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  const auto size = as_int(data->shape[axis]);
  if (size && attrs.k > *size)
    input.fail(fmt::format("k is {}, and axis {} of {} has {} elements", attrs.k, axis, show(data), *size));
  if (attrs.ret_type != "values") check_positions(input, attrs.dtype, data->shape[axis], kAskForInt64);
  Array<PrimExpr> dims = data->shape;
  if (attrs.k >= 1) dims.set(axis, make_int(attrs.k));
  const TensorType values = make_tensor_type(dims, data->dtype), indices = make_tensor_type(dims, attrs.dtype);
  if (attrs.ret_type == "values") return values;
  if (attrs.ret_type == "indices") return indices;
  return make_tuple_type({values, indices});
}

Type relate_searchsorted(const RelationInput& input) {
  const TensorType sequence = input.tensor(0), values = input.tensor(1);
  const auto& attrs = input.call.attrs_as<SearchSortedAttrs>();
  check_index_dtype(input, attrs.dtype);
  if (!sequence || !values) return {};
  check_same_dtype(input, sequence, values, "values");
  const size_t rank = sequence->shape.size();
  if (rank == 0) input.fail("sorted_sequence must have at least one dimension");
  check_positions(input, attrs.dtype, sequence->shape.back(), kAskForInt64, Positions::or_their_number);
  if (rank > 1) {
    bool agrees = rank == values->shape.size();
    for (size_t i = 0; agrees && i + 1 < rank; ++i) {
      const auto a = as_int(sequence->shape[i]), b = as_int(values->shape[i]);
      agrees = !(a && b && *a != *b);
    }
    if (!agrees)
      input.fail(fmt::format("sorted_sequence must have one dimension, or the values' but for the last: {} and {}",
                             show(sequence), show(values)));
  }
  return make_tensor_type(values->shape, attrs.dtype);
}

// ---- eval

// Returns whether a sorts before b: NaN is the greatest, and no NaN is before another.
template <typename C>
bool is_less(C a, C b) {
  return b != b ? a == a : a < b;
}

// Calls body(first position, distance of elements) for each line along the axis.
template <typename F>
void for_each_line(const Shape& shape, size_t axis, F&& body) {
  int64_t inner = 1, outer = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i < axis) outer *= shape[i];
    if (i > axis) inner *= shape[i];
  }
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) body(o * shape[axis] * inner + i, inner);
  }
}

// The order of each line: order(position of the line, index within it). Equal elements keep theirs.
template <typename F>
void sort_lines(const EvalInput& input, size_t axis, bool ascending, F&& take) {
  const NDArray& data = input.args[0];
  const int64_t size = data.shape()[axis], comparisons = size * std::bit_width(static_cast<uint64_t>(size));
  dispatch_any(data.dtype(), [&]<typename T>() {
    const Elements<T> x(data);
    std::vector<int64_t> order(static_cast<size_t>(size));
    for_each_line(data.shape(), axis, [&](int64_t at, int64_t step) {
      input.spend(comparisons);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        const auto a = x[at + i * step], b = x[at + j * step];
        if (is_less(a, b) || is_less(b, a)) return is_less(a, b) == ascending;
        return i < j;
      });
      take(at, step, order);
    });
  });
}

void set_index(const NDArray& out, int64_t at, int64_t index) {
  if (out.dtype().is_float()) {
    set_element(out.tensor(), at, static_cast<double>(index));
  } else {
    set_element_int(out.tensor(), at, index);
  }
}

// The first elements of each sorted line, as many as the outputs have along the axis; either may be null.
void take_first(const EvalInput& input, size_t axis, bool ascending, const NDArray& values, const NDArray& indices) {
  const NDArray& data = input.args[0];
  const int64_t size = data.shape()[axis], count = (values ? values : indices).shape()[axis];
  if (indices) check_positions(indices.dtype(), size, kAskForInt64);
  sort_lines(input, axis, ascending, [&](int64_t at, int64_t step, const std::vector<int64_t>& order) {
    // An empty line has no begin, and no results either.
    const int64_t begin = size == 0 ? 0 : at / (size * step) * count * step + at % step;
    for (int64_t k = 0; k < count; ++k) {
      const int64_t index = order[static_cast<size_t>(k)];
      if (values) copy_element(data, at + index * step, values, begin + k * step);
      if (indices) set_index(indices, begin + k * step, index);
    }
  });
}

template <bool gives_values>
std::vector<NDArray> eval_sort(const EvalInput& input) {
  const auto& attrs = input.attrs<ArgsortAttrs>();
  const NDArray out = input.make_output();
  const size_t axis = normal_axis(attrs.axis, out.shape().size());
  take_first(input, axis, attrs.is_ascend, gives_values ? out : NDArray(), gives_values ? NDArray() : out);
  return {out};
}

std::vector<NDArray> eval_topk(const EvalInput& input) {
  const auto& attrs = input.attrs<TopKAttrs>();
  std::vector<NDArray> outs{input.make_output()};
  if (attrs.ret_type == "both") outs.push_back(input.make_output(1));
  const size_t axis = normal_axis(attrs.axis, outs[0].shape().size());
  take_first(input, axis, attrs.is_ascend, attrs.ret_type == "indices" ? NDArray() : outs[0],
             attrs.ret_type == "values" ? NDArray() : outs.back());
  return outs;
}

std::vector<NDArray> eval_searchsorted(const EvalInput& input) {
  const NDArray &sequence = input.args[0], &values = input.args[1];
  const NDArray out = input.make_output();
  const bool right = input.attrs<SearchSortedAttrs>().right, is_shared = sequence.shape().size() == 1;
  check_positions(out.dtype(), sequence.shape().back(), kAskForInt64, Positions::or_their_number);
  const int64_t size = sequence.shape().back(), row = values.shape().empty() ? 1 : values.shape().back();
  dispatch_any(sequence.dtype(), [&]<typename T>() {
    const Elements<T> x(sequence), v(values);
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      const int64_t begin = is_shared ? 0 : i / row * size;
      int64_t low = 0, high = size;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const bool is_before = right ? !is_less(v[i], x[begin + middle]) : is_less(x[begin + middle], v[i]);
        (is_before ? low : high) = is_before ? middle + 1 : middle;
      }
      set_index(out, i, low);
    }
  });
  return {out};
}

}  // namespace

void register_sort_ops() {
  const auto sorting = [](const char* name, const char* doc, TypeRelationFn relation, EvalFn eval) {
    OpBuilder(name, doc)
        .arg("data", "Tensor", "T[...]: the tensor to sort")
        .attrs<ArgsortAttrs>()
        .relation(std::move(relation))
        .fusion(FusionKind::opaque)
        .level(6)
        .eval(std::move(eval))
        .keeps_layout_but_axis<ArgsortAttrs>();
  };
  sorting("sort", "data in order along `axis`: data T[...] -> the same type. NaN is the greatest.", relate_sort,
          eval_sort<true>);
  sorting("argsort",
          "The indices that put data in order along `axis`: data T[...] -> dtype[...]. Equal elements keep their "
          "order; NaN is the greatest.",
          relate_argsort, eval_sort<false>);
  OpBuilder("topk",
            "The k greatest elements along `axis`, the greatest first, and their indices: data T[.., n, ..] -> (T[.., "
            "k, ..], dtype[.., k, ..]). Of equal elements the first; NaN is the greatest.")
      .arg("data", "Tensor", "T[...]: the tensor to search")
      .attrs<TopKAttrs>()
      .relation(relate_topk)
      .fusion(FusionKind::opaque)
      .level(6)
      .eval(eval_topk)
      .keeps_layout_but_axis<TopKAttrs>();
  OpBuilder("searchsorted",
            "Where values would stand in a sorted sequence: sorted_sequence T[n] or T[..., n], values T[..., m] -> "
            "dtype[..., m]. NaN is the greatest.")
      .arg("sorted_sequence", "Tensor", "T[n] or T[..., n]: a tensor that is sorted along its last axis")
      .arg("values", "Tensor", "T[..., m]: the values to insert")
      .attrs<SearchSortedAttrs>()
      .relation(relate_searchsorted)
      .fusion(FusionKind::opaque)
      .level(6)
      .eval(eval_searchsorted);
}

Expr argsort(Expr data, int64_t axis, bool is_ascend, DataType dtype, Span span) {
  return call_with<ArgsortAttrs>("argsort", {std::move(data)}, std::move(span),
                                 [&](auto& a) { a.axis = axis, a.is_ascend = is_ascend, a.dtype = dtype; });
}

Expr topk(Expr data, int64_t k, int64_t axis, std::string ret_type, bool is_ascend, DataType dtype, Span span) {
  return call_with<TopKAttrs>("topk", {std::move(data)}, std::move(span), [&](auto& a) {
    a.k = k, a.axis = axis, a.is_ascend = is_ascend, a.dtype = dtype;
    a.ret_type = std::move(ret_type);
  });
}

}  // namespace headrace::ops
