#include "driver/all_passes.h"

#include "passes/pipeline.h"
#include "relay/infer_type.h"

namespace headrace::driver {

namespace {

using pass::Pass;

std::vector<NamedPass> make_list() {
  const auto infer = [](const IRModule& module, const pass::PassContext&) { return relay::infer_type(module); };
  std::vector<NamedPass> list{{{{"InferType", 0, {}}, infer}, "gives every expression its type"}};
  constexpr std::pair<std::string_view, std::string_view> kSummaries[] = {
      {"SimplifyInference", "batch norm and dropout become arithmetic"},
      {"DynamicToStatic", "known shape arithmetic becomes constants and attributes"},
      {"FoldConstant", "what depends on constants alone becomes a constant"},
      {"FoldScaleAxis", "multiplications after a convolution move into its weights"},
      {"SimplifyExpr", "algebraic laws: x + 0, pairs of transposes, reshapes, casts ..."},
      {"EliminateCommonSubexpr", "equal calls become one"},
      {"DeadCodeElimination", "unused lets and unreachable functions are dropped"},
      {"FuseOps", "groups of op calls become functions that are compiled as one kernel"},
  };
  std::vector<Pass> passes = passes::canonical();
  for (Pass& pass : passes::native()) passes.push_back(std::move(pass));
  for (Pass& pass : passes) {
    const auto same = [&](const auto& row) { return row.first == pass.info.name; };
    const auto* summary = std::find_if(std::begin(kSummaries), std::end(kSummaries), same);
    HEADRACE_CHECK(summary != std::end(kSummaries), "pass {} has no line in all_passes.cc", pass.info.name);
    const bool is_new = std::none_of(list.begin(), list.end(),
                                     [&](const NamedPass& known) { return known.pass.info.name == pass.info.name; });
    if (is_new) list.push_back({std::move(pass), summary->second});
  }
  return list;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

const std::vector<NamedPass>& all_passes() {
  static const std::vector<NamedPass> list = make_list();
  return list;
}

const Pass& get_pass(std::string_view name) {
  std::vector<std::string_view> names{"canonical", "native"};
  for (const NamedPass& known : all_passes()) {
    if (pass::same_pass_name(known.pass.info.name, name)) return known.pass;
    names.push_back(known.pass.info.name);
  }
  throw_user_error("there is no pass '{}'; there are {}", name, fmt::join(names, ", "));
}

PassList parse_pass_list(std::string_view text) {
  PassList list;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view name = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (name == "canonical" || name == "native") {
      for (Pass& pass : name == "canonical" ? passes::canonical() : passes::native())
        list.passes.push_back(std::move(pass));
    } else if (!name.empty()) {
      list.passes.push_back(get_pass(name));
      list.named.push_back(list.passes.back().info.name);
    }
  }
  return list;
}

}  // namespace headrace::driver
