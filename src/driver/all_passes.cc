#include "driver/all_passes.h"

#include "passes/pipeline.h"
#include "relay/infer_type.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

using pass::Pass;

constexpr std::pair<std::string_view, std::string_view> kSummaries[] = {
    {"InferType", "gives every expression its type"},
    {"SimplifyInference", "batch norm and dropout become arithmetic"},
    {"DynamicToStatic", "known shape arithmetic becomes constants and attributes"},
    {"FoldConstant", "what depends on constants alone becomes a constant"},
    {"FoldScaleAxis", "multiplications after a convolution move into its weights"},
    {"SimplifyExpr", "algebraic laws: x + 0, pairs of transposes, reshapes, casts ..."},
    {"EliminateCommonSubexpr", "equal calls become one"},
    {"DeadCodeElimination", "unused lets and unreachable functions are dropped"},
    {"FuseOps", "groups of op calls become functions that are compiled as one kernel"},
    {"VectorizeLoop", "loops marked vectorized become vector operations"},
    {"UnrollLoop", "loops marked unrolled become copies of their body"},
    {"LowerMath", "exp, log, tanh and erf of float32 become polynomials"},
};

// The lists that have a name.
std::vector<std::pair<std::string_view, std::vector<Pass>>> named_lists(Ir ir) {
  if (ir == Ir::tir) return {{"kernel", tir_passes::pipeline()}};
  return {{"canonical", passes::canonical()}, {"native", passes::native()}};
}

std::vector<NamedPass> make_list(Ir ir) {
  std::vector<Pass> passes;
  const auto infer = [](const IRModule& module, const pass::PassContext&) { return relay::infer_type(module); };
  if (ir == Ir::relay) passes.push_back({{"InferType", 0, {}}, infer});
  for (auto& [name, members] : named_lists(ir)) passes.insert(passes.end(), members.begin(), members.end());
  std::vector<NamedPass> list;
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

const std::vector<NamedPass>& all_passes(Ir ir) {
  static const std::vector<NamedPass> relay_list = make_list(Ir::relay), tir_list = make_list(Ir::tir);
  return ir == Ir::tir ? tir_list : relay_list;
}

const Pass& get_pass(std::string_view name, Ir ir) {
  std::vector<std::string_view> names;
  for (const auto& [list, members] : named_lists(ir)) names.push_back(list);
  for (const NamedPass& known : all_passes(ir)) {
    if (pass::same_pass_name(known.pass.info.name, name)) return known.pass;
    names.push_back(known.pass.info.name);
  }
  throw_user_error("there is no pass '{}'{}; there are {}", name, ir == Ir::tir ? " of loop programs" : "",
                   fmt::join(names, ", "));
}

PassList parse_pass_list(std::string_view text, Ir ir) {
  PassList list;
  const auto lists = named_lists(ir);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view name = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (name.empty()) continue;
    const auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& row) { return row.first == name; });
    if (found != lists.end()) {
      list.passes.insert(list.passes.end(), found->second.begin(), found->second.end());
    } else {
      list.passes.push_back(get_pass(name, ir));
      list.named.push_back(list.passes.back().info.name);
    }
  }
  return list;
}

}  // namespace headrace::driver
