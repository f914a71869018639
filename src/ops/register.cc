#include "ops/register.h"

#include <algorithm>

#include "base/count_of.h"

namespace headrace::ops {

OpBuilder::OpBuilder(std::string name, std::string doc) : op_(register_op(std::move(name))) {
  op_->doc = std::move(doc);
  op_->num_inputs = 0;
  op_->support_level = 1;
}

OpBuilder& OpBuilder::arg(std::string name, std::string kind, std::string doc) {
  op_->arguments.push_back({std::move(name), std::move(kind), std::move(doc)});
  ++op_->num_inputs;
  return *this;
}

OpBuilder& OpBuilder::any_args() {
  op_->num_inputs = -1;
  counts_args_ = false;
  return *this;
}

OpBuilder& OpBuilder::relation(TypeRelationFn relation) {
  const size_t count = counts_args_ ? static_cast<size_t>(op_->num_inputs) : 0;
  op_->set(relay::kTypeRelation,
           TypeRelationFn([relation = std::move(relation), check = check_attrs_, count, counts = counts_args_,
                           key = op_->attrs_type_key](const RelationInput& input) -> Type {
             if (counts && input.arg_types.size() != count) {
               input.fail(fmt::format("takes {}, got {}", count_of(count, "argument"), input.arg_types.size()));
             }
             if (check != nullptr && !check(input.call.attrs)) {
               input.fail(fmt::format("needs attributes of type {}, got {}", key,
                                      input.call.attrs ? input.call.attrs->key() : std::string_view("none")));
             }
             return relation(input);
           }));
  return *this;
}

OpBuilder& OpBuilder::fusion(FusionKind kind) {
  op_->set(kFusionKind, kind);
  return *this;
}

OpBuilder& OpBuilder::eval(EvalFn eval) {
  op_->set(kEval, std::move(eval));
  return *this;
}

OpBuilder& OpBuilder::value(ValueInferenceFn infer) {
  op_->set(relay::kValueInference, std::move(infer));
  return *this;
}

OpBuilder& OpBuilder::stateful() {
  op_->set(kStateful, true);
  return *this;
}

OpBuilder& OpBuilder::level(int32_t support_level) {
  op_->support_level = support_level;
  return *this;
}

void check_one_of(const RelationInput& input, std::string_view what, const std::string& got,
                  std::initializer_list<std::string_view> known) {
  if (std::find(known.begin(), known.end(), got) == known.end())
    input.fail(fmt::format("{} is '{}', expected one of {}", what, got, fmt::join(known, ", ")));
}

static bool is_integer_dtype(DataType dtype) { return dtype.is_int() || dtype.is_uint(); }

void check_out_dtype(const RelationInput& input, DataType out, DataType data) {
  if ((out.is_float() && data.is_float()) || (is_integer_dtype(out) && is_integer_dtype(data))) return;
  input.fail(fmt::format("out_dtype {} and data of {} must both be floats or both integers", out, data));
}

void check_same_dtype(const RelationInput& input, const TensorType& expected, const TensorType& got,
                      std::string_view what) {
  if (expected->dtype == got->dtype) return;
  input.fail(fmt::format("{} must have dtype {}, got {} ({} and {}); cast one of them", what, expected->dtype,
                         got->dtype, show(expected), show(got)));
}

void check_factor_dtypes(const RelationInput& input, const TensorType& first, const TensorType& second,
                         std::string_view what) {
  const bool are_integers = is_integer_dtype(first->dtype) && is_integer_dtype(second->dtype);
  if (!are_integers) check_same_dtype(input, first, second, what);
}

size_t normal_axis(const RelationInput& input, int64_t axis, size_t rank, std::string_view what) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    input.fail(fmt::format("{} {} is out of range for a tensor of {}; argument 0 is {}", what, axis,
                           count_of(rank, "dimension"), to_string(input.arg_types.at(0))));
  }
  return normal_axis(axis, rank);
}

}  // namespace headrace::ops
