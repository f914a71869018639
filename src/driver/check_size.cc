#include "driver/check_size.h"

#include "artifact/tensor_extent.h"
#include "lower/lower_function.h"
#include "relay/expr.h"
#include "relay/visit.h"

namespace headrace::driver {

static_assert(kMaxBytes == lower::kMaxBufferBytes);

namespace {

constexpr std::string_view kAdvice = "fix a smaller batch or picture with the inputs' shapes";
// Prepended to the advice if an op computes the tensor.
constexpr std::string_view kOrPadding = "check the padding and the sizes in its attributes, or ";

std::string name_of(const Expr& expr) {
  const auto* call = expr.as<relay::CallNode>();
  return call != nullptr && call->as_op() != nullptr ? call->as_op()->name : "compile";
}

// Returns why an artifact cannot hold a tensor of the type, as the end of a sentence; empty if it can.
std::string shape_fault(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr) return {};
  if (tensor->shape.size() > artifact::kMaxRank)
    return fmt::format("has {} dimensions, more than {}", tensor->shape.size(), artifact::kMaxRank);
  if (tensor->dtype.is_handle()) return "has elements of handle, which are not numbers";
  if (tensor->dtype.lanes() != 1) return fmt::format("has elements of {}, which are vectors", tensor->dtype);
  return {};
}

// Returns the bytes of a tensor of static shape, as a double because the product may overflow any integer.
double bytes_of(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  if (!shape) return 0;
  auto bytes = static_cast<double>(tensor->dtype.bytes());
  for (const int64_t dim : *shape) bytes *= static_cast<double>(dim);
  return bytes;
}

}  // namespace

void check_tensor_sizes(const IRModule& module) {
  for (const auto& [name, function] : module->functions()) {
    const auto* body = function.as<relay::FunctionNode>();
    if (body == nullptr) continue;
    relay::post_order(function.cast<relay::FunctionNode>(), [](const Expr& expr) {
      const std::string fault = expr->has_checked_type() ? shape_fault(expr->checked_type()) : "";
      if (!fault.empty()) throw_at(expr->span, name_of(expr), "a tensor " + fault);
      if (!expr->has_checked_type() || bytes_of(expr->checked_type()) <= static_cast<double>(kMaxBytes)) return;
      throw_at(
          expr->span, name_of(expr),
          fmt::format("a tensor {} would have {:.0f} GB, more than any machine; {}{}", to_string(expr->checked_type()),
                      bytes_of(expr->checked_type()) / 1e9, expr.is<relay::CallNode>() ? kOrPadding : "", kAdvice));
    });
  }
}

void check_run_size(int64_t arena_bytes) {
  if (arena_bytes <= kMaxBytes) return;
  throw_user_error("a run would hold {} GB at once, more than any machine; {}", arena_bytes / 1'000'000'000, kAdvice);
}

void check_workspace_size(int64_t workspace_bytes, const Span& op) {
  if (workspace_bytes <= kMaxBytes) return;
  throw_at(op, "compile",
           fmt::format("its kernel would work in {} GB, more than any machine has; {}{}",
                       workspace_bytes / 1'000'000'000, kOrPadding, kAdvice));
}

}  // namespace headrace::driver
