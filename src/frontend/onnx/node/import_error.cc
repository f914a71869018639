#include "frontend/onnx/node/import_error.h"

#include <algorithm>

#include "frontend/onnx/file/field_reader.h"

namespace headrace::onnx {

namespace {

constexpr size_t kMostShown = 50;

std::string describe(const NodeRefusal& refusal) {
  if (refusal.op.empty()) return refusal.message;
  return fmt::format("node {} ({}): {}", printable(refusal.node), escaped(refusal.op), refusal.message);
}

// Advice about operators that no converter knows; the text gives it once for all of them. The second sentence is for
// imports in which no backend was asked.
constexpr std::string_view kRemedy = "docs/onnx-support.md lists the supported operators";
constexpr std::string_view kBackendRemedy =
    ", and a backend may run others: python -m headrace compile ... --backends onnxruntime, or in Python "
    "hr.compile(..., backends=[\"onnxruntime\"])";

bool lacks_operator(const NodeRefusal& refusal) { return refusal.reason == HR_REASON_OP_UNSUPPORTED; }

bool may_be_claimed(const NodeRefusal& refusal) { return lacks_operator(refusal) && refusal.may_be_claimed; }

std::string describe_all(const std::vector<NodeRefusal>& refusals, bool has_asked_backends) {
  std::string remedy;
  if (std::any_of(refusals.begin(), refusals.end(), lacks_operator)) remedy = kRemedy;
  if (!has_asked_backends && std::any_of(refusals.begin(), refusals.end(), may_be_claimed)) remedy += kBackendRemedy;
  if (refusals.size() == 1) {
    return fmt::format("the model cannot be imported: {}{}{}", describe(refusals[0]), remedy.empty() ? "" : "; ",
                       remedy);
  }
  std::string text = fmt::format("the model cannot be imported, for {} reasons:", refusals.size());
  for (size_t i = 0; i < refusals.size() && i < kMostShown; ++i) text += "\n  " + describe(refusals[i]);
  if (refusals.size() > kMostShown) text += fmt::format("\n  ... and {} more", refusals.size() - kMostShown);
  if (!remedy.empty()) text += "\n" + remedy;
  return text;
}

}  // namespace

ImportError::ImportError(std::vector<NodeRefusal> refusals, const std::string& source, bool has_asked_backends)
    : UserError(describe_all(refusals, has_asked_backends),
                {.op = refusals.empty() ? "" : refusals[0].node, .place = source}),
      refusals_(std::move(refusals)) {}

}  // namespace headrace::onnx
