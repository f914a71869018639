#include "relay/text/old_attrs.h"

#include <algorithm>
#include <span>

#include "object/string.h"

namespace headrace::relay {

namespace {

using Fields = std::vector<std::pair<std::string, Value>>;

// When an attribute says nothing.
enum class Silent : uint8_t {
  empty_text,  // ""
  none,        // None, or an empty list
  zero,        // 0, in any way of writing it
  no,          // False
  yes,         // True
  operand,     // as the operand of that number
};

struct OldAttr {
  std::vector<std::string_view> ops;
  std::string_view name;
  Silent silent;
  std::string_view advice;  // where it says something
  size_t operand = 0;
};

const std::vector<OldAttr>& old_attrs() {
  static const std::vector<std::string_view> kWeighted = {"nn.conv1d", "nn.conv2d", "nn.conv3d",
                                                          "nn.dense",  "nn.matmul", "nn.batch_matmul"};
  static const std::vector<std::string_view> kResizes = {"image.resize1d", "image.resize2d", "image.resize3d"};
  constexpr std::string_view kTuned = "it is a layout that a tuner of TVM gave the weight: write the program before it";
  constexpr std::string_view kTwice = "it repeats an operand, which says something else: leave it out";
  static const std::vector<OldAttr> kAttrs = {
      {kWeighted, "auto_scheduler_rewritten_layout", Silent::empty_text, kTuned},
      {kWeighted, "meta_schedule_original_shape", Silent::none, kTuned},
      {kResizes, "extrapolation_value", Silent::zero, "it is of tf_crop_and_resize: write image.crop_and_resize"},
      {{"reshape"}, "reverse", Silent::no, "sizes are found from the right: write contrib_reverse_reshape"},
      {{"contrib_reverse_reshape"}, "reverse", Silent::yes, "sizes are found from the left: write reshape"},
      {{"arange"}, "start", Silent::operand, kTwice, 0},
      {{"arange"}, "stop", Silent::operand, kTwice, 1},
      {{"arange"}, "step", Silent::operand, kTwice, 2},
  };
  return kAttrs;
}

bool is_empty_list(const Value& value) {
  const auto* array = value.as_node<ArrayObj>();
  return array != nullptr && array->items.empty();
}

// Reads a number as text writes it (3, 3i64, 2.5f), or from a tensor of one element.
std::optional<double> as_number(const Value& value) {
  if (value.type_index() == type_index::kInt || value.type_index() == type_index::kFloat) return value.as<double>();
  if (const auto* imm = value.as_node<IntImmNode>()) return static_cast<double>(imm->value);
  if (value.type_index() != type_index::kTensor) return std::nullopt;
  const NDArray data = value.as<NDArray>().to_dense();
  if (data.num_elements() != 1 || !data.dtype().is_scalar() || data.dtype().is_handle()) return std::nullopt;
  return element_as_double(data.tensor(), 0);
}

// Returns whether an attribute may repeat an operand; an operand that is not constant in the text cannot be compared.
bool repeats(const Value& value, const Expr& operand) {
  const auto* constant = operand.as<ConstantNode>();
  const auto given = as_number(value);
  return given && (constant == nullptr || as_number(Value(constant->data)) == given);
}

bool says_nothing(const OldAttr& attr, const Value& value, const Array<Expr>& args) {
  const bool is_bool = value.type_index() == type_index::kBool;
  switch (attr.silent) {
    case Silent::empty_text:
      return is_string(value.raw()) && string_of(value.raw()).empty();
    case Silent::none:
      return value.is_none() || is_empty_list(value);
    case Silent::zero:
      return as_number(value) == 0.0;
    case Silent::no:
      return is_bool && !value.as<bool>();
    case Silent::yes:
      return is_bool && value.as<bool>();
    case Silent::operand:
      return attr.operand < args.size() && repeats(value, args[attr.operand]);
  }
  return false;
}

void drop_silent(const OpNode& op, const Array<Expr>& args, Fields& fields) {
  for (const OldAttr& attr : old_attrs()) {
    if (std::find(attr.ops.begin(), attr.ops.end(), op.name) == attr.ops.end()) continue;
    std::erase_if(fields, [&](const auto& field) {
      if (field.first != attr.name) return false;
      if (!says_nothing(attr, field.second, args))
        throw_user_error("the attribute '{}' of {} is accepted only with a value that has no effect: {}", attr.name,
                         op.name, attr.advice);
      return true;
    });
  }
}

Value* find_value(Fields& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

// Converts nn.pad(%x, pad_value=0, pad_width=[[1, 1]]), the form before the value became an operand; the default is 0.
void make_pad_operand(Array<Expr>& args, Fields& fields) {
  const Value* value = find_value(fields, "pad_value");
  if (args.size() != 1 || (value == nullptr && find_value(fields, "pad_width") == nullptr)) return;
  const auto number = value == nullptr ? 0.0 : as_number(*value);
  if (!number)
    throw_user_error("the attribute 'pad_value' of nn.pad is a number; what is computed is its last operand");
  NDArray data = NDArray::empty({}, DataType::float_(64));
  set_element(data.tensor(), 0, *number);
  args.push_back(make_constant(data));
  std::erase_if(fields, [](const auto& field) { return field.first == "pad_value"; });
}

// Returns the dtype of a value as far as the text gives it: a constant's, or that of a variable's annotation.
std::optional<DataType> dtype_in_text(const Expr& value) {
  if (const auto* constant = value.as<ConstantNode>()) return constant->data.dtype();
  const auto* var = value.as<VarNode>();
  const auto* type = var == nullptr ? nullptr : var->type_annotation.as<TensorTypeNode>();
  return type == nullptr ? std::nullopt : std::optional(type->dtype);
}

void set_dtype_of_full(const Array<Expr>& args, Fields& fields) {
  Value* given = find_value(fields, "dtype");
  const bool says_void = given != nullptr && is_string(given->raw()) &&
                         (string_of(given->raw()).empty() || string_of(given->raw()) == "void");
  if ((given != nullptr && !says_void) || args.empty()) return;
  const auto dtype = dtype_in_text(args[0]);
  if (says_void && !dtype)
    throw_user_error("dtype=\"void\" of full is the dtype of its value, which the text does not say; write it");
  if (!dtype) return;
  if (given != nullptr) {
    *given = Value(*dtype);
  } else {
    fields.emplace_back("dtype", Value(*dtype));
  }
}

}  // namespace

void take_old_attrs(const OpNode& op, Array<Expr>& args, Fields& fields) {
  drop_silent(op, args, fields);
  if (op.name == "nn.pad") make_pad_operand(args, fields);
  if (op.name == "full") set_dtype_of_full(args, fields);
}

}  // namespace headrace::relay
