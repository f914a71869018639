#include "frontend/onnx/import_error.h"

#include "frontend/onnx/field_reader.h"

namespace headrace::onnx {

namespace {

constexpr size_t kMostShown = 50;

std::string describe(const NodeRefusal& refusal) {
  if (refusal.op.empty()) return refusal.message;
  return fmt::format("node {} ({}): {}", printable(refusal.node), escaped(refusal.op), refusal.message);
}

std::string describe_all(const std::vector<NodeRefusal>& refusals) {
  if (refusals.size() == 1) return "the model cannot be imported: " + describe(refusals[0]);
  std::string text = fmt::format("the model cannot be imported, for {} reasons:", refusals.size());
  for (size_t i = 0; i < refusals.size() && i < kMostShown; ++i) text += "\n  " + describe(refusals[i]);
  if (refusals.size() > kMostShown) text += fmt::format("\n  ... and {} more", refusals.size() - kMostShown);
  return text;
}

}  // namespace

ImportError::ImportError(std::vector<NodeRefusal> refusals, const std::string& source)
    : UserError(describe_all(refusals), {.op = refusals.empty() ? "" : refusals[0].node, .place = source}),
      refusals_(std::move(refusals)) {}

}  // namespace headrace::onnx
