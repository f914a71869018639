// OpBuilder, with which an op family registers its ops.
//
//   OpBuilder("nn.relu", "max(x, 0)").arg("data").relation(same_type).fusion(FusionKind::elementwise).eval(eval_relu);
//
// Helpers that families share: ops/loops/dims.h (symbolic dimensions), ops/loops/element.h (element types of eval),
// ops/loops/index.h (strides and iteration).
#pragma once

#include "ops/axis.h"
#include "ops/op_facts.h"

namespace headrace::ops {

using relay::RelationInput;
using relay::TypeRelationFn;
using relay::ValueInferenceFn;

class OpBuilder {
 public:
  // Makes the op known; `doc` says purpose, shapes, dtypes and source.
  OpBuilder(std::string name, std::string doc);
  // Adds the next argument. An op with arguments checks their number before its relation is asked; see any_args().
  OpBuilder& arg(std::string name, std::string kind = "Tensor", std::string doc = "");
  // Lets the op take any number of arguments.
  OpBuilder& any_args();
  // Sets the struct of the op's attributes. A call without it, or with another, is a UserError.
  template <typename T>
  OpBuilder& attrs() {
    op_->attrs_type_key = type_of<T>().key;
    check_attrs_ = [](const ObjectRef& attrs) { return attrs.is<T>(); };
    return *this;
  }
  // Sets the type relation; call after arg() and attrs(), whose checks then run before it.
  OpBuilder& relation(TypeRelationFn relation);
  OpBuilder& fusion(FusionKind kind);
  OpBuilder& eval(EvalFn eval);
  OpBuilder& value(ValueInferenceFn infer);
  OpBuilder& level(int32_t support_level);
  // Sets any other key: kRepeats, kBoundedForm (ops/op_facts.h).
  template <typename T>
  OpBuilder& fact(const OpKey<T>& key, std::type_identity_t<T> value) {
    op_->set(key, std::move(value));
    return *this;
  }
  // Sets kKeepLayout for ops whose only axis is the attribute `axis` of their struct T.
  template <typename T>
  OpBuilder& keeps_layout_but_axis() {
    return fact(kKeepLayout, [](const relay::CallNode& call, const LayoutForm& form) -> std::optional<Attrs> {
      const T& attrs = call.attrs_as<T>();
      const auto axis = form.whole(attrs.axis);
      if (!axis) return std::nullopt;
      return Attrs(copy_with(attrs, [&](T& copy) { copy.axis = *axis; }));
    });
  }
  // Marks the op as having effects; see kStateful.
  OpBuilder& stateful();

 private:
  Op op_;
  bool (*check_attrs_)(const ObjectRef&) = nullptr;
  bool counts_args_ = true;
};

// Makes a call of `op` with attributes T that `fill` has set.
template <typename T, typename F>
Expr call_with(std::string_view op, Array<Expr> args, Span span, F&& fill) {
  auto attrs = make_object<T>();
  fill(*attrs);
  return relay::make_call(op, std::move(args), Attrs(attrs), std::move(span));
}

// Returns a type's text for messages: "Tensor[(1, n), float32]".
inline std::string show(const TensorType& type) { return to_string(Type(type)); }
// Fails unless argument `i`'s dtype is `expected`'s; `what` names the argument.
void check_same_dtype(const RelationInput& input, const TensorType& expected, const TensorType& got,
                      std::string_view what);
// Fails unless the operands of a product have one dtype or are both integers, such as uint8 data and int8 weights.
// Integers are converted to the result's dtype before they are multiplied. `what` names the second operand.
void check_factor_dtypes(const RelationInput& input, const TensorType& first, const TensorType& second,
                         std::string_view what);
// Fails unless the attribute `what` is one of the words.
void check_one_of(const RelationInput& input, std::string_view what, const std::string& got,
                  std::initializer_list<std::string_view> known);
// Fails unless products of `data` can be summed up in `out`: both are floats, or both integers.
void check_out_dtype(const RelationInput& input, DataType out, DataType data);
// Returns normal_axis of ops/axis.h; fails when `axis` is outside.
size_t normal_axis(const RelationInput& input, int64_t axis, size_t rank, std::string_view what = "axis");

}  // namespace headrace::ops
