// Rules of ops that change a tensor's shape: each element is copied from the data, at a computed index.
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

// Makes the rule that copies each element of the result from the data's element at `source(index)`.
Compute reshaping_rule(const RuleInput& input, const std::function<Index(const Index&)>& source) {
  return map_rule(input, [&](const Index& i) { return load(input.inputs[0], source(i)); });
}

// Dimensions [begin, end) of a shape.
struct Group {
  size_t begin, end;
};

// Splits two shapes with equal numbers of elements into the shortest pairs of groups with equal numbers of elements.
std::vector<std::pair<Group, Group>> match_groups(const Shape& a, const Shape& b) {
  std::vector<std::pair<Group, Group>> groups;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const size_t first_i = i, first_j = j;
    int64_t m = i < a.size() ? a[i++] : 1, n = j < b.size() ? b[j++] : 1;
    while (m != n) {
      if (m < n && i < a.size()) {
        m *= a[i++];
      } else if (j < b.size()) {
        n *= b[j++];
      } else {
        m *= a[i++];
      }
    }
    groups.push_back({{first_i, i}, {first_j, j}});
  }
  return groups;
}

// Returns the row-major position of `index` within the dimensions of `group`.
PrimExpr flatten(const Index& index, const Shape& shape, const Group& group) {
  PrimExpr at = make_int(0);
  for (size_t i = group.begin; i < group.end; ++i) {
    if (shape[i] != 1) at = at * shape[i] + index[i];
  }
  return at;
}

// Inverse of flatten.
void unflatten(PrimExpr at, const Shape& shape, const Group& group, Index& index) {
  size_t outermost = group.begin;
  while (outermost < group.end && shape[outermost] == 1) ++outermost;
  for (size_t i = group.end; i-- > group.begin;) {
    if (shape[i] == 1) {
      index[i] = make_int(0);
    } else if (i == outermost) {
      index[i] = at;
    } else {
      index[i] = floor_mod(at, make_int(shape[i]));
      at = floor_div(at, make_int(shape[i]));
    }
  }
}

// Copies the elements in row-major order.
Compute reshape_rule(const RuleInput& input) {
  const Shape from = static_shape(input, input.in_types[0]->shape), to = static_shape(input, input.out_types[0]->shape);
  // An empty tensor has no index, so that no groups are needed.
  const bool is_empty = num_elements(from) == 0;
  const auto groups = is_empty ? std::vector<std::pair<Group, Group>>{} : match_groups(from, to);
  return reshaping_rule(input, [&](const Index& i) {
    Index source(from.size(), make_int(0));
    for (const auto& [mine, theirs] : groups) unflatten(flatten(i, to, theirs), from, mine, source);
    return source;
  });
}

Compute transpose_rule(const RuleInput& input) {
  const Shape& axes = input.attrs<ops::TransposeAttrs>().axes;
  const size_t rank = input.in_types[0]->shape.size();
  return reshaping_rule(input, [&](const Index& i) {
    Index source(rank);
    for (size_t k = 0; k < rank; ++k) source[axes.empty() ? rank - 1 - k : normal_axis(axes[k], rank)] = i[k];
    return source;
  });
}

Compute broadcast_rule(const RuleInput& input) {
  return map_rule(input, [&](const Index& i) { return load_broadcast(input.inputs[0], i); });
}

Compute tile_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  return reshaping_rule(input, [&](const Index& i) {
    Index source;
    for (size_t k = 0; k < shape.size(); ++k) {
      const size_t out = i.size() - shape.size() + k;
      const bool is_whole = is_int(input.out_types[0]->shape[out], as_int(shape[k]).value_or(-1));
      source.push_back(is_whole ? i[out] : is_int(shape[k], 1) ? make_int(0) : floor_mod(i[out], shape[k]));
    }
    return source;
  });
}

Compute repeat_rule(const RuleInput& input) {
  const auto& attrs = input.attrs<ops::RepeatAttrs>();
  const size_t axis = normal_axis(attrs.axis, input.in_types[0]->shape.size());
  return reshaping_rule(input, [&](Index i) {
    // An axis repeated zero times makes the result empty, so this index is never used.
    i[axis] = attrs.repeats == 0 ? make_int(0) : floor_div(i[axis], make_int(attrs.repeats));
    return i;
  });
}

Compute reverse_rule(const RuleInput& input) {
  const Array<PrimExpr>& shape = input.in_types[0]->shape;
  const size_t axis = normal_axis(input.attrs<ops::ReverseAttrs>().axis, shape.size());
  return reshaping_rule(input, [&](Index i) {
    i[axis] = shape[axis] - 1 - i[axis];
    return i;
  });
}

}  // namespace

void register_shape_rules() {
  for (const char* op :
       {"reshape", "contrib_reverse_reshape", "reshape_like", "nn.batch_flatten", "squeeze", "expand_dims"}) {
    set_rule(op, reshape_rule);
  }
  set_rule("transpose", transpose_rule);
  set_rule("broadcast_to", broadcast_rule);
  set_rule("broadcast_to_like", broadcast_rule);
  set_rule("tile", tile_rule);
  set_rule("repeat", repeat_rule);
  set_rule("reverse", reverse_rule);
}

}  // namespace headrace::lower
