#include "tools/headrace/index_limits.h"

#include <algorithm>
#include <unordered_map>

#include "ops/algorithm/scatter.h"
#include "ops/op_handles.h"
#include "ops/tensor/slice.h"
#include "relay/match.h"
#include "relay/visit.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

namespace {

using relay::CallNode;

constexpr int64_t kNoLimit = INT64_MAX;

// More inputs than this flow into no index.
constexpr size_t kMostSources = 16;

bool is_integer(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor != nullptr) return tensor->dtype.is_int() || tensor->dtype.is_uint();
  const auto* tuple = type.as<TupleTypeNode>();
  return tuple != nullptr && std::any_of(tuple->items.begin(), tuple->items.end(), is_integer);
}

// The length of the axis; kNoLimit where it is not known.
int64_t length_of(const TensorTypeNode& data, int64_t axis) {
  const auto rank = static_cast<int64_t>(data.shape.size());
  if (axis < 0) axis += rank;
  const auto length = axis >= 0 && axis < rank ? as_int(data.shape[static_cast<size_t>(axis)]) : std::nullopt;
  return length && *length > 0 ? *length : kNoLimit;
}

int64_t number_of_elements(const TensorTypeNode& data) {
  int64_t count = 1;
  for (size_t i = 0; i < data.shape.size(); ++i) {
    const int64_t length = length_of(data, static_cast<int64_t>(i));
    if (length == kNoLimit || count > kNoLimit / length) return kNoLimit;
    count *= length;
  }
  return count;
}

// The shortest of the first axes from `first` on that a column of `indices`, (depth, ...), picks from.
int64_t shortest_of_columns(const TensorTypeNode& data, const Expr& indices, int64_t first) {
  const auto* type = indices->checked_type().as<TensorTypeNode>();
  const int64_t depth = type == nullptr ? 0 : as_int(type->shape[0]).value_or(0);
  int64_t limit = kNoLimit;
  for (int64_t m = 0; m < depth; ++m) limit = std::min(limit, length_of(data, first + m));
  return limit;
}

// Calls `on_index(operand, limit)` with each operand by which a call picks from an axis, and the axis's length.
template <typename OnIndex>
void for_each_index(const CallNode& call, OnIndex&& on_index) {
  if (relay::is_call(call, op::kAdvIndex)) {
    const auto* items = call.args[0].as<relay::TupleNode>();
    const auto* data = items == nullptr ? nullptr : items->items[0]->checked_type().as<TensorTypeNode>();
    for (size_t i = 1; data != nullptr && i < items->items.size(); ++i)
      on_index(items->items[i], length_of(*data, static_cast<int64_t>(i) - 1));
    return;
  }
  const auto* data = call.args.size() < 2 ? nullptr : call.args[0]->checked_type().as<TensorTypeNode>();
  if (data == nullptr) return;
  const Expr& indices = call.args[1];
  if (relay::is_call(call, op::kGather)) {
    on_index(indices, length_of(*data, call.attrs_as<ops::GatherAttrs>().axis));
  } else if (relay::is_call(call, op::kScatterElements)) {
    on_index(indices, length_of(*data, call.attrs_as<ops::ScatterElementsAttrs>().axis));
  } else if (relay::is_call(call, op::kTake)) {
    const auto& axis = call.attrs_as<ops::TakeAttrs>().axis;
    on_index(indices, axis ? length_of(*data, *axis) : number_of_elements(*data));
  } else if (relay::is_call(call, op::kGatherNd)) {
    on_index(indices, shortest_of_columns(*data, indices, call.attrs_as<ops::GatherNDAttrs>().batch_dims));
  } else if (relay::is_call(call, op::kScatterNd)) {
    on_index(indices, shortest_of_columns(*data, indices, 0));
  }
}

int64_t most_of(DataType dtype) {
  const int bits = std::min(dtype.bits() - (dtype.is_int() ? 1 : 0), 62);
  return int64_t{1} << bits;
}

}  // namespace

std::vector<int64_t> index_limits(const IRModule& module) {
  const auto main = module->lookup("main").cast<relay::FunctionNode>();
  std::vector<int64_t> limits(main->params.size(), kNoLimit);
  // The parameters that an expression of integers is made of.
  std::unordered_map<const ExprNode*, std::vector<size_t>> sources;
  for (size_t i = 0; i < main->params.size(); ++i) sources[main->params[i].get()] = {i};
  relay::post_order(main->body, [&](const Expr& expr) {
    const auto* call = expr.as<CallNode>();
    if (call != nullptr) {
      for_each_index(*call, [&](const Expr& index, int64_t limit) {
        for (const size_t source : sources[index.get()]) limits[source] = std::min(limits[source], limit);
      });
    }
    if (expr.is<relay::VarNode>() || expr.is<OpNode>() || !is_integer(expr->checked_type())) return;
    std::vector<size_t> mine;
    for (const Expr& child : relay::children_of(expr)) {
      const auto known = sources.find(child.get());
      if (known != sources.end()) mine.insert(mine.end(), known->second.begin(), known->second.end());
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    if (!mine.empty() && mine.size() <= kMostSources) sources[expr.get()] = std::move(mine);
  });
  for (size_t i = 0; i < limits.size(); ++i) {
    const auto* type = main->params[i]->checked_type().as<TensorTypeNode>();
    if (limits[i] == kNoLimit) limits[i] = kRandomLimit;
    if (type != nullptr) limits[i] = std::min(limits[i], most_of(type->dtype));
  }
  return limits;
}

}  // namespace headrace::tools
