#include "relay/text/dyn_operands.h"

#include <algorithm>

namespace headrace::relay {

namespace {

enum class Kind { integers, integer, number };

// The operands from `first` on are these attributes, in this order.
struct DynOp {
  std::string_view name;
  size_t first;
  Kind kind;
  std::vector<std::string_view> attributes;
};

const std::vector<DynOp>& dyn_ops() {
  static const std::vector<DynOp> kOps = {
      {"dyn.squeeze", 1, Kind::integers, {"axis"}},
      {"dyn.expand_dims", 1, Kind::integer, {"axis"}},
      {"dyn.topk", 1, Kind::integer, {"k"}},
      {"dyn.one_hot", 3, Kind::integer, {"depth"}},
      {"dyn.nn.upsampling", 1, Kind::number, {"scale_h", "scale_w"}},
      {"dyn.nn.upsampling3d", 1, Kind::number, {"scale_d", "scale_h", "scale_w"}},
  };
  return kOps;
}

[[noreturn]] void throw_operand(const DynOp& op, std::string_view attribute, std::string_view fault) {
  throw_user_error("{} takes '{}' as an operand, which is an attribute here: {}", op.name, attribute, fault);
}

Value attribute_of(const DynOp& op, std::string_view attribute, const Expr& operand) {
  const auto* constant = operand.as<ConstantNode>();
  if (constant == nullptr)
    throw_operand(op, attribute,
                  fmt::format("it must be a constant in the text; make it one, or write {}(..., {}=...)",
                              op.name.substr(4), attribute));
  const NDArray data = constant->data.to_dense();
  const bool is_integer = data.dtype().is_int() || data.dtype().is_uint();
  if (!data.dtype().is_scalar() || !(is_integer || (op.kind == Kind::number && data.dtype().is_float())))
    throw_operand(op, attribute,
                  fmt::format("it is of {}, got {}", op.kind == Kind::number ? "numbers" : "integers", data.dtype()));
  if (op.kind == Kind::integers && data.num_elements() == 0) throw_operand(op, attribute, "it has no elements");
  if (op.kind != Kind::integers && data.num_elements() != 1)
    throw_operand(op, attribute, fmt::format("it has one element, got {}", data.num_elements()));
  if (op.kind == Kind::number) return Value(element_as_double(data.tensor(), 0));
  if (op.kind == Kind::integer) return Value(element_as_int(data.tensor(), 0));
  Shape integers;
  for (int64_t i = 0; i < data.num_elements(); ++i) integers.push_back(element_as_int(data.tensor(), i));
  return Value(integers);
}

}  // namespace

std::vector<std::pair<std::string, Value>> take_dyn_operands(std::string_view name, Array<Expr>& args) {
  const auto op =
      std::find_if(dyn_ops().begin(), dyn_ops().end(), [&](const DynOp& each) { return each.name == name; });
  if (op == dyn_ops().end()) return {};
  const size_t count = op->first + op->attributes.size();
  if (args.size() != count) throw_user_error("{} takes {} arguments, got {}", name, count, args.size());
  std::vector<std::pair<std::string, Value>> attributes;
  for (size_t i = 0; i < op->attributes.size(); ++i)
    attributes.emplace_back(op->attributes[i], attribute_of(*op, op->attributes[i], args[op->first + i]));
  Array<Expr> rest;
  for (size_t i = 0; i < op->first; ++i) rest.push_back(args[i]);
  args = rest;
  return attributes;
}

}  // namespace headrace::relay
