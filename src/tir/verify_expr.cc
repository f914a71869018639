#include "tir/verify_expr.h"

#include "base/count_of.h"
#include "ir/intrinsics.h"
#include "tir/post_order.h"
#include "tir/print.h"
#include "tir/text_words.h"

namespace headrace::tir {

namespace {

bool is_integer(DataType dtype) { return dtype.is_int() || dtype.is_uint(); }

class ExprRules {
 public:
  explicit ExprRules(const PrimExpr& e) : e_(e) {}

  std::vector<std::string> check() {
    for (const PrimExpr& operand : operands_of(e_)) {
      if (!operand) return {"an expression has a null part"};
    }
    if (const auto* binary = e_.as<BinaryNode>()) {
      check_binary(*binary);
    } else if (const auto* inverse = e_.as<NotNode>()) {
      expect(inverse->a->dtype.is_bool(), "not takes conditions");
      expect_dtype(inverse->a->dtype);
    } else if (const auto* select = e_.as<SelectNode>()) {
      check_choice(select->condition, select->true_value, select->false_value);
    } else if (const auto* cast = e_.as<CastNode>()) {
      expect(cast->value->dtype.lanes() == e_->dtype.lanes(), "a cast keeps the number of lanes");
      expect(!e_->dtype.is_handle() && !cast->value->dtype.is_handle(), "pointers are not cast");
    } else if (e_.is<RampNode>() || e_.is<BroadcastNode>()) {
      check_vector();
    } else if (const auto* let = e_.as<PrimLetNode>()) {
      expect(let->var.defined() && let->var->dtype == let->value->dtype, "a let's variable has the dtype of its value");
      expect_dtype(let->body->dtype);
    } else if (const auto* load = e_.as<BufferLoadNode>()) {
      breaches_ = breaches_of_access(load->buffer, load->indices, {});
      if (breaches_.empty()) expect_dtype(load->buffer->dtype.with_lanes(lanes_of(load->indices)));
    } else if (const auto* call = e_.as<IntrinsicCallNode>()) {
      check_intrinsic(*call);
    } else {
      expect(!e_.is<AnyNode>() && !e_.is<StringImmNode>(), "no statement computes with it");
    }
    return std::move(breaches_);
  }

  static int lanes_of(const Array<PrimExpr>& indices) { return indices.empty() ? 1 : indices.back()->dtype.lanes(); }

 private:
  void expect(bool holds, std::string_view rule) {
    if (!holds) breaches_.push_back(fmt::format("{} in `{}`", rule, summary(e_)));
  }
  void expect_dtype(DataType dtype) {
    if (e_->dtype != dtype)
      breaches_.push_back(fmt::format("`{}` is {} but should be {}", summary(e_), e_->dtype, dtype));
  }

  void check_binary(const BinaryNode& node) {
    const DataType dtype = node.a->dtype;
    expect(dtype == node.b->dtype, fmt::format("{} of {} and {}", name_of(node.op), dtype, node.b->dtype));
    if (is_logical(node.op)) expect(dtype.is_bool(), fmt::format("{} takes conditions", name_of(node.op)));
    expect(!dtype.is_handle() && !dtype.is_void(), "pointers are not computed with");
    expect_dtype(is_comparison(node.op) || is_logical(node.op) ? DataType::bool_(dtype.lanes()) : dtype);
  }

  void check_choice(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b) {
    expect(condition->dtype.is_bool(), fmt::format("a condition of {}", condition->dtype));
    expect(condition->dtype.is_scalar() || condition->dtype.lanes() == a->dtype.lanes(),
           fmt::format("a condition of {} for {}", condition->dtype, a->dtype));
    expect(a->dtype == b->dtype, fmt::format("a choice between {} and {}", a->dtype, b->dtype));
    expect_dtype(a->dtype);
  }

  void check_vector() {
    const auto* ramp = e_.as<RampNode>();
    const PrimExpr base = ramp != nullptr ? ramp->base : e_.as<BroadcastNode>()->value;
    expect(base->dtype.is_scalar() && e_->dtype.lanes() > 1, "a vector is made of a scalar");
    expect(ramp == nullptr || is_integer(base->dtype), "a ramp is one of integers");
    expect(ramp == nullptr || ramp->stride->dtype == base->dtype, "a ramp has one dtype");
    expect_dtype(base->dtype.with_lanes(e_->dtype.lanes()));
  }

  void check_intrinsic(const IntrinsicCallNode& node) {
    const IntrinsicRow& row = row_of(node.intrinsic);
    const OperandRule operand = row.operands;
    if (node.args.size() != row.arity)
      return expect(false,
                    fmt::format("{} takes {}, not {}", row.name, count_of(row.arity, "argument"), node.args.size()));
    if (operand == OperandRule::choice) return check_choice(node.args[0], node.args[1], node.args[2]);
    if (operand == OperandRule::place) return check_place(node);
    const DataType first = node.args[0]->dtype;
    if (operand == OperandRule::bits) {
      expect(first.bits() == e_->dtype.bits() && first.lanes() == e_->dtype.lanes() && !first.is_handle() &&
                 !e_->dtype.is_handle(),
             fmt::format("{} has other bits than {}", first, e_->dtype));
      return;
    }
    const bool fits = operand == OperandRule::real      ? first.is_float()
                      : operand == OperandRule::integer ? is_integer(first) || first.is_bool()
                                                        : !first.is_handle() && !first.is_void();
    expect(fits, fmt::format("{} of {}", name_of(node.intrinsic), first));
    for (const PrimExpr& arg : node.args)
      expect(arg->dtype == first, fmt::format("{} of {} and {}", name_of(node.intrinsic), first, arg->dtype));
    if (const auto dtype = usual_dtype(node.intrinsic, node.args)) expect_dtype(*dtype);
  }

  void check_place(const IntrinsicCallNode& node) {
    const auto* place = node.args[0].as<BufferLoadNode>();
    const bool is_pointer = node.args[0]->dtype.is_handle();
    expect(is_pointer || (place != nullptr && place->dtype.is_scalar()), "the first argument is a place in a buffer");
    expect(is_integer(node.args[1]->dtype) && node.args[1]->dtype.is_scalar(),
           "the second argument is a number of elements");
    if (node.intrinsic == Intrinsic::vector_load)
      expect(is_pointer || e_->dtype.element() == node.args[0]->dtype, fmt::format("vector_load gives {}", e_->dtype));
  }

  const PrimExpr& e_;
  std::vector<std::string> breaches_;
};

}  // namespace

std::vector<std::string> breaches_of(const PrimExpr& e) { return ExprRules(e).check(); }

std::vector<std::string> breaches_of_access(const Buffer& buffer, const Array<PrimExpr>& indices,
                                            const PrimExpr& stored) {
  if (!buffer) return {"an access has no buffer"};
  std::vector<std::string> breaches;
  if (indices.size() != buffer->shape.size())
    breaches.push_back(fmt::format("'{}' has {} dimensions, but {} indices are given", buffer->name,
                                   buffer->shape.size(), indices.size()));
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i]) return {fmt::format("an index of '{}' is null", buffer->name)};
    const DataType dtype = indices[i]->dtype;
    if (!is_integer(dtype)) breaches.push_back(fmt::format("an index of '{}' is {}", buffer->name, dtype));
    if (!dtype.is_scalar() && i + 1 != indices.size())
      breaches.push_back(fmt::format("an index of '{}' before the last is a vector", buffer->name));
  }
  const DataType place = buffer->dtype.with_lanes(ExprRules::lanes_of(indices));
  if (stored && stored->dtype != place)
    breaches.push_back(fmt::format("{} is stored to a place of {}", stored->dtype, place));
  return breaches;
}

}  // namespace headrace::tir
