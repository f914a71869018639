#include "backends/examplejson/compile/examplejson.h"

#include <array>

#include "backends/examplejson/run/graph_module.h"
#include "backends/examplejson/run/graph_text.h"
#include "ops/op_handles.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::backends::examplejson {

namespace {

using partition::RegionCode;
using partition::Verdict;

// Returns the word of an op in the graph's text; empty for an op that has none.
std::string_view word_of(const relay::CallNode& call) {
  if (relay::is_call(call, op::kAdd)) return "add";
  if (relay::is_call(call, op::kSubtract)) return "sub";
  return relay::is_call(call, op::kMultiply) ? "mul" : "";
}

Verdict check_call(const relay::CallNode& call) {
  if (word_of(call).empty()) return {HR_REASON_OP_UNSUPPORTED, "the backend computes add, subtract and multiply only"};
  const auto* result = call.checked_type().as<TensorTypeNode>();
  const auto shape = result == nullptr ? std::nullopt : as_shape(result->shape);
  if (!shape) return {HR_REASON_DYNAMIC_UNSUPPORTED, "its size is not a number"};
  if (result->dtype != DataType::float_(32))
    return {HR_REASON_DTYPE_UNSUPPORTED, fmt::format("it is of {}; the backend takes float32", result->dtype)};
  for (const Expr& arg : call.args) {
    if (arg.is<relay::ConstantNode>())
      return {HR_REASON_OP_UNSUPPORTED, "one of its operands is a constant, which graphs of this format do not hold"};
    if (relay::known_shape_of(arg) != shape)
      return {HR_REASON_SHAPE_UNSUPPORTED, "its operands have different shapes, and the backend does not broadcast"};
  }
  return {};
}

// Writes a region as a subgraph.
class GraphWriter {
 public:
  explicit GraphWriter(const partition::RegionSource& region)
      : function_(*region.function), name_(region.name), text_(region.name + "\n") {}

  Expected<std::string> write() {
    const auto* root = relay::op_call(function_.body);
    if (!is_subgraph_name(name_))
      return Refusal{HR_REASON_BAD_MODEL,
                     fmt::format("its name '{}' is not one of a subgraph, which has letters, digits and _, and is not "
                                 "'input'; rename it",
                                 name_)};
    if (root == nullptr)
      return Refusal{HR_REASON_OP_UNSUPPORTED, "the region has several results, or none that it computes"};
    const Shape shape = relay::known_shape_of(function_.body).value_or(Shape());
    for (const int64_t dim : shape) dims_ += fmt::format(" {}", dim);
    for (const relay::Var& param : function_.params) text_ += fmt::format("input {}{}\n", id_of(param), dims_);
    relay::post_order(function_.body, [&](const Expr& expr) { visit(expr, shape); });
    if (refusal_) return *std::move(refusal_);
    return text_;
  }

 private:
  size_t id_of(const Expr& expr) { return ids_.try_emplace(expr.get(), ids_.size()).first->second; }

  void visit(const Expr& expr, const Shape& shape) {
    if (refusal_ || expr.is<OpNode>() || expr.is<relay::VarNode>()) return;
    const auto* call = relay::op_call(expr);
    if (call == nullptr) {
      refusal_ = Refusal{HR_REASON_OP_UNSUPPORTED, fmt::format("the region holds a {}", expr->key())};
    } else if (const Verdict verdict = check_call(*call); !verdict.ok()) {
      refusal_ = Refusal{verdict.reason, fmt::format("the call of '{}': {}", call->as_op()->name, verdict.message)};
    } else if (relay::known_shape_of(expr) != shape) {
      refusal_ = Refusal{HR_REASON_SHAPE_UNSUPPORTED, "the tensors of the region have different shapes"};
    } else {
      const size_t a = id_of(call->args[0]), b = id_of(call->args[1]);
      text_ += fmt::format("{} {} inputs: {} {} shape:{}\n", word_of(*call), id_of(expr), a, b, dims_);
    }
  }

  const relay::FunctionNode& function_;
  const std::string& name_;
  std::string text_, dims_;
  std::unordered_map<const Object*, size_t> ids_;
  std::optional<Refusal> refusal_;
};

class ExampleJson : public partition::Backend {
 public:
  std::string_view name() const override { return "examplejson"; }
  std::string version() const override { return "1"; }
  Verdict supports(const relay::CallNode& call) const override { return check_call(call); }

  // All regions are subgraphs of one module.
  std::vector<Expected<RegionCode>> compile(const partition::RegionRequest& request) const override {
    partition::refuse_options(*this, request.options);
    std::vector<Expected<std::string>> texts;
    std::string all;
    for (const partition::RegionSource& region : request.regions) {
      texts.push_back(GraphWriter(region).write());
      if (texts.back()) all += texts.back().value();
    }
    const runtime::Module module = all.empty() ? runtime::Module() : make_graph_module(all);
    std::vector<Expected<RegionCode>> codes;
    for (const Expected<std::string>& text : texts) {
      if (text) {
        codes.emplace_back(RegionCode{.module = module});
      } else {
        codes.emplace_back(text.refusal());
      }
    }
    return codes;
  }
};

}  // namespace

std::shared_ptr<const partition::Backend> make_backend() { return std::make_shared<ExampleJson>(); }

}  // namespace headrace::backends::examplejson
