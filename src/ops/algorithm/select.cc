#include "ops/algorithm/select.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "arith/canonical.h"
#include "ops/loops/element.h"
#include "ops/loops/move.h"
#include "ops/loops/positions.h"
#include "ops/families.h"
#include "ops/tensor/elementwise.h"
#include "relay/match.h"

namespace headrace::ops {

void UniqueAttrs::fields(FieldList<UniqueAttrs>& f) {
  f.field<&UniqueAttrs::sorted>(
       "sorted", {.default_value = true, .has_default = true, .doc = "ascending, not in the order of the data"})
      .field<&UniqueAttrs::return_counts>(
          "return_counts", {.default_value = false, .has_default = true, .doc = "how often each occurs, too"});
}

namespace {

constexpr DataType kIndex = DataType::int_(32);

// ---- argwhere

Type places_type(const TensorType& condition, PrimExpr count) {
  return make_tensor_type(Array<PrimExpr>{std::move(count), make_int(static_cast<int64_t>(condition->shape.size()))},
                          kIndex);
}

constexpr std::string_view kCutIt = "search parts of the tensor, one after the other";

Type relate_argwhere(const RelationInput& input) {
  const TensorType condition = input.tensor(0);
  if (!condition) return {};
  for (const PrimExpr& size : condition->shape) check_positions(input, kIndex, size, kCutIt);
  return places_type(condition, make_any());
}

Type relate_argwhere_bounded(const RelationInput& input) {
  const TensorType condition = input.tensor(0);
  if (!condition) return {};
  check_positions(input, kIndex, arith::product(condition->shape), kCutIt, Positions::or_their_number);
  return make_tuple_type({places_type(condition, arith::product(condition->shape)),
                          make_tensor_type(Array<PrimExpr>{make_int(1)}, kIndex)});
}

// Returns the index of every element that is not zero, one after the other.
std::vector<int64_t> places_of(const NDArray& condition) {
  std::vector<int64_t> places;
  int64_t next = 0;
  for_each_index(condition.shape(), [&](const Shape& index) {
    const int64_t at = next++;
    const bool holds = condition.dtype().is_float() ? element_as_double(condition.tensor(), at) != 0
                                                    : element_as_int(condition.tensor(), at) != 0;
    if (holds) places.insert(places.end(), index.begin(), index.end());
  });
  return places;
}

int64_t count_true(const NDArray& condition) {
  int64_t count = 0;
  for (int64_t i = 0; i < condition.num_elements(); ++i) {
    count += condition.dtype().is_float() ? element_as_double(condition.tensor(), i) != 0
                                          : element_as_int(condition.tensor(), i) != 0;
  }
  return count;
}

void write(const NDArray& out, const std::vector<int64_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) set_element_int(out.tensor(), static_cast<int64_t>(i), values[i]);
}

Expr bound_argwhere(const relay::CallNode& call) {
  if (!relay::known_shape_of(call.args[0])) return {};
  const Expr found = relay::make_call("argwhere_bounded", {call.args[0]}, {}, call.span);
  const Expr count = relay::make_tuple_get_item(found, 1, call.span);
  return relay::make_tuple(
      {relay::make_tuple_get_item(found, 0, call.span), cast(count, DataType::int_(64), call.span)}, call.span);
}

std::vector<NDArray> eval_argwhere(const EvalInput& input) {
  const NDArray& condition = input.args[0];
  const NDArray out = NDArray::empty({count_true(condition), static_cast<int64_t>(condition.shape().size())}, kIndex);
  write(out, places_of(condition));
  return {out};
}

std::vector<NDArray> eval_argwhere_bounded(const EvalInput& input) {
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  for (int64_t i = 0; i < outs[0].num_elements(); ++i) set_element_int(outs[0].tensor(), i, -1);
  write(outs[0], places_of(input.args[0]));
  set_element_int(outs[1].tensor(), 0, count_true(input.args[0]));
  return outs;
}

// ---- unique

Type relate_unique(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  if (data->shape.size() != 1 || data->dtype.is_bool())
    input.fail(fmt::format("data must be numbers of one dimension, got {}", show(data)));
  check_positions(input, kIndex, data->shape[0], kCutIt, Positions::or_their_number);
  const Type indices = make_tensor_type(data->shape, kIndex);
  Array<Type> results{data, indices, indices, make_tensor_type(Array<PrimExpr>{make_int(1)}, kIndex)};
  if (input.call.attrs_as<UniqueAttrs>().return_counts) results.push_back(indices);
  return make_tuple_type(results);
}

// Returns the elements grouped by value, with the ascending positions of each group.
template <typename T>
std::vector<std::vector<int64_t>> groups_of(const NDArray& array, bool is_sorted) {
  const Elements<T> data(array);
  std::vector<int64_t> order(static_cast<size_t>(array.num_elements()));
  std::iota(order.begin(), order.end(), 0);
  // NaN is the greatest, and equal to itself.
  const auto is_less = [&](int64_t i, int64_t j) {
    const Compute<T> a = data[i], b = data[j];
    return a < b || (a == a && b != b);
  };
  std::stable_sort(order.begin(), order.end(), is_less);
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t i : order) {
    if (groups.empty() || is_less(groups.back()[0], i)) groups.emplace_back();
    groups.back().push_back(i);
  }
  if (!is_sorted) std::sort(groups.begin(), groups.end());
  return groups;
}

std::vector<NDArray> eval_unique(const EvalInput& input) {
  const auto& attrs = input.attrs<UniqueAttrs>();
  std::vector<NDArray> outs;
  for (size_t i = 0; i < input.out_types.size(); ++i) {
    outs.push_back(input.make_output(i));
    for (int64_t k = 0; k < outs[i].num_elements(); ++k) set_element_int(outs[i].tensor(), k, 0);
  }
  const int64_t size = input.args[0].num_elements();
  input.spend(size * std::bit_width(static_cast<uint64_t>(size)));  // comparisons
  dispatch_number(input.args[0].dtype(), [&]<typename T>() {
    const auto groups = groups_of<T>(input.args[0], attrs.sorted);
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto at = static_cast<int64_t>(g);
      Elements<T>(outs[0]).set(at, Elements<T>(input.args[0])[groups[g][0]]);
      set_element_int(outs[1].tensor(), at, groups[g][0]);
      for (const int64_t i : groups[g]) set_element_int(outs[2].tensor(), i, at);
      if (attrs.return_counts) set_element_int(outs[4].tensor(), at, std::ssize(groups[g]));
    }
    set_element_int(outs[3].tensor(), 0, std::ssize(groups));
  });
  return outs;
}

}  // namespace

Expr argwhere(Expr condition, Span span) {
  return relay::make_call("argwhere", {std::move(condition)}, {}, std::move(span));
}

Expr unique(Expr data, bool sorted, bool return_counts, Span span) {
  return call_with<UniqueAttrs>("unique", {std::move(data)}, std::move(span),
                                [&](auto& a) { a.sorted = sorted, a.return_counts = return_counts; });
}

void register_select_ops() {
  OpBuilder("argwhere",
            "Where a tensor is not zero: condition T[n...] -> int32[?, rank], as many rows as there are such places. "
            "Compiled programs have it among their results; where more is done with it, they need argwhere_bounded.")
      .arg("condition", "Tensor", "T[...]: the tensor whose places with a value other than 0 are given")
      .relation(relate_argwhere)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_argwhere)
      .fact(kBoundedForm, bound_argwhere);
  OpBuilder("argwhere_bounded",
            "Where a tensor is not zero, in a buffer with room for every place: condition T[n...] -> (int32[elements, "
            "rank] the places, -1 behind "
            "them; int32[1] how many).")
      .arg("condition", "Tensor", "T[...]: the tensor whose places with a value other than 0 are given")
      .relation(relate_argwhere_bounded)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_argwhere_bounded);
  OpBuilder(
      "unique",
      "The different elements of data T[n] -> (T[n] the elements, int32[n] where each is first, int32[n] which of "
      "them every element is, int32[1] how many, and with return_counts int32[n] how often each is); zeros "
      "behind them. NaN is the greatest, and one element.")
      .arg("data", "Tensor", "T[n], numbers: the elements")
      .attrs<UniqueAttrs>()
      .relation(relate_unique)
      .fusion(FusionKind::opaque)
      .level(10)
      .eval(eval_unique);
}

}  // namespace headrace::ops
