#include "pass/known_passes.h"

#include <map>
#include <mutex>

namespace headrace::pass {

namespace {

struct PassTable {
  std::mutex mutex;
  std::map<std::string, PassInfo> passes;
};

// Relay's passes that are not here: a context that leaves one out has what it wants.
constexpr std::string_view kNotHere[] = {
    "AlterOpLayout",
    "AnnotateMemoryScope",
    "AnnotateTarget",
    "AutoSchedulerLayoutRewrite",
    "BatchingOps",
    "CombineParallelOpBatch",
    "Conv2dToSparse",
    "Conv2dToSparse2",
    "DenseToSparse",
    "FakeQuantizationToInteger",
    "FlattenAtrousConv",
    "LabelOps",
    "LazyGradientInit",
    "ManifestAlloc",
    "ManifestLifetimes",
    "MergeCompilerRegions",
    "MergeComposite",
    "MetaScheduleLayoutRewrite",
    "PartitionGraph",
    "QnnCanonicalize",
    "QnnLegalize",
    "qnn.Legalize",
    "SimplifyExprPostAlterOp",
    "SimplifyFCTranspose",
    "ToCPS",
};

PassTable& pass_table() {
  static PassTable& instance = *new PassTable;
  return instance;
}

}  // namespace

void make_known(const PassInfo& info) {
  std::lock_guard lock(pass_table().mutex);
  pass_table().passes.try_emplace(info.name, info);
}

void check_pass_names(const std::vector<std::string>& names, NamedTo purpose) {
  if (names.empty()) return;
  std::lock_guard lock(pass_table().mutex);
  for (const std::string& name : names) {
    const auto is_called = [&](const auto& row) { return row.second.is_called(name); };
    if (std::any_of(pass_table().passes.begin(), pass_table().passes.end(), is_called)) continue;
    const auto is_it = [&](std::string_view missing) { return same_pass_name(missing, name); };
    if (purpose == NamedTo::disable && std::any_of(std::begin(kNotHere), std::end(kNotHere), is_it)) continue;
    std::vector<std::string> known;
    for (const auto& [key, info] : pass_table().passes) known.push_back(key);
    throw_user_error("there is no pass '{}' to {}; the passes are {}", name,
                     purpose == NamedTo::disable ? "leave out" : "require", fmt::join(known, ", "));
  }
}

}  // namespace headrace::pass
