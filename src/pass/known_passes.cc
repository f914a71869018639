#include "pass/known_passes.h"

#include <map>
#include <mutex>

#include "ir/near_names.h"

namespace headrace::pass {

namespace {

struct PassTable {
  std::mutex mutex;
  std::map<std::string, PassInfo> passes;
};

// Relay's passes that do not exist here, each with its replacement.
constexpr std::pair<std::string_view, std::string_view> kNotHere[] = {
    {"AnnotateMemoryScope", "there are no textures"},
    {"AutoSchedulerLayoutRewrite", "schedules are not written by hand"},
    {"BatchingOps", "the three CombineParallel passes are by their own names"},
    {"CombineParallelOpBatch", "the three CombineParallel passes are for products"},
    {"Conv2dToSparse", "weights stay dense; call the sparse ops, such as nn.sparse_dense, for those that are sparse"},
    {"Conv2dToSparse2", "weights stay dense; call the sparse ops, such as nn.sparse_dense, for those that are sparse"},
    {"DenseToSparse", "weights stay dense; call the sparse ops, such as nn.sparse_dense, for those that are sparse"},
    {"FakeQuantizationToInteger", "floats are not replaced by integers"},
    {"LabelOps", "kernels have names by their content"},
    {"ManifestAlloc", "memory is planned when a program is compiled"},
    {"ManifestLifetimes", "memory is planned when a program is compiled"},
    {"MetaScheduleLayoutRewrite", "schedules are not written by hand"},
    {"QnnLegalize", "QnnCanonicalize makes plain ops of quantized ones for every machine"},
    {"qnn.Legalize", "QnnCanonicalize makes plain ops of quantized ones for every machine"},
    {"SimplifyExprPostAlterOp", "SimplifyExpr has all the laws"},
    {"SimplifyFCTranspose", "FoldConstant transposes constant weights"},
    {"ToCPS", "there is no continuation-passing form"},
};

PassTable& pass_table() {
  static PassTable& instance = *new PassTable;
  return instance;
}

}  // namespace

std::string option_key(std::string_view pass, std::string_view option) {
  return fmt::format("relay.{}.{}", pass, option);
}

void declare_options(const PassInfo& info) {
  for (ConfigKey option : info.options) {
    option.name = option_key(info.name, option.name);
    declare_config_key(std::move(option));
  }
}

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
    const auto is_it = [&](const auto& row) { return same_pass_name(row.first, name); };
    const auto missing = std::find_if(std::begin(kNotHere), std::end(kNotHere), is_it);
    if (missing != std::end(kNotHere)) {
      if (purpose == NamedTo::disable) continue;
      throw_user_error("there is no pass '{}' to require: {}", name, missing->second);
    }
    std::vector<std::string> known;
    for (const auto& [key, info] : pass_table().passes) known.push_back(key);
    throw_user_error("there is no pass '{}' to {}; {}", name, purpose == NamedTo::disable ? "leave out" : "require",
                     near_or_all(name, known, "the passes are"));
  }
}

Map<std::string, std::string> passes_not_here() {
  Map<std::string, std::string> result;
  for (const auto& [name, instead] : kNotHere) result.set(std::string(name), std::string(instead));
  return result;
}

}  // namespace headrace::pass
