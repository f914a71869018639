#include "driver/all_passes.h"

#include "ir/near_names.h"
#include "ir/op_attrs.h"
#include "partition/compose.h"
#include "pass/known_passes.h"
#include "partition/region_passes.h"
#include "passes/gradient/gradient_rules.h"
#include "passes/layout/alter_op_layout.h"
#include "passes/layout/convert_layout.h"
#include "passes/nn/precision_lists.h"
#include "passes/pipeline.h"
#include "passes/simplify/legalize.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/result_types.h"
#include "tir_passes/pipeline.h"

namespace headrace::driver {

namespace {

using pass::Pass;

// Returns the lists that a pass list can name.
std::vector<std::pair<std::string_view, std::vector<Pass>>> named_lists(Ir ir, const cost::Machine& machine) {
  if (ir == Ir::tir) return {{"kernel", tir_passes::pipeline()}};
  return {{"canonical", passes::canonical()}, {"native", passes::native(machine)}};
}

std::vector<Pass> make_list(Ir ir, const cost::Machine& machine) {
  std::vector<Pass> list;
  if (ir == Ir::relay) {
    list.push_back({{"InferType", 0, {}, "gives every expression its type, and functions the type of their result"},
                    [](const IRModule& module, const pass::PassContext&) {
                      const IRModule typed = relay::infer_type(module);
                      const IRModule annotated = relay::with_result_types(typed);
                      return annotated == typed ? typed : relay::infer_type(annotated);
                    }});
  }
  // A later pass replaces an earlier one of the same name, so that by_name() overrides the lists of a build.
  const auto add = [&list](const std::vector<Pass>& members) {
    for (const Pass& pass : members) {
      const auto same = [&](const Pass& known) { return known.info.name == pass.info.name; };
      const auto found = std::find_if(list.begin(), list.end(), same);
      if (found == list.end()) {
        list.push_back(pass);
      } else {
        *found = pass;
      }
    }
  };
  for (const auto& [name, members] : named_lists(ir, machine)) add(members);
  if (ir == Ir::relay) {
    add(passes::by_name());
    add({partition::merging_composites()});
    add(partition::region_passes());
  }
  return list;
}

const Pass* find_pass(std::string_view name, const std::vector<Pass>& list) {
  const auto same = [&](const Pass& known) { return known.info.is_called(name); };
  const auto found = std::find_if(list.begin(), list.end(), same);
  return found == list.end() ? nullptr : &*found;
}

// Throws the error for an unknown pass. `lists` holds the names of lists that are allowed in its place.
[[noreturn]] void throw_unknown(std::string_view name, Ir ir, std::vector<std::string_view> lists) {
  for (const Pass& pass : all_passes(ir)) lists.push_back(pass.info.name);
  const bool is_tir = ir == Ir::tir;
  const std::string known = fmt::format("{}", fmt::join(lists, ", "));
  if (const Pass* other = find_pass(name, all_passes(is_tir ? Ir::relay : Ir::tir)))
    throw_user_error("{} is a pass of {} programs, and this is a {} program; for it there are {}", other->info.name,
                     is_tir ? "Relay" : "loop", is_tir ? "loop" : "Relay", known);
  throw_user_error("there is no pass '{}'{}; {}", name, is_tir ? " of loop programs" : "",
                   near_or_all(name, {lists.begin(), lists.end()}, "there are"));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

const std::vector<Pass>& all_passes(Ir ir) {
  static const std::vector<Pass> relay_list = make_list(Ir::relay, {}), tir_list = make_list(Ir::tir, {});
  return ir == Ir::tir ? tir_list : relay_list;
}

const Pass& get_pass(std::string_view name, Ir ir) {
  const Pass* found = find_pass(name, all_passes(ir));
  if (found == nullptr) throw_unknown(name, ir, {});
  return *found;
}

void declare_passes() {
  for (const Ir ir : {Ir::relay, Ir::tir}) {
    for (const Pass& pass : all_passes(ir)) pass::make_known(pass.info);
  }
  for (const Pass& pass : all_passes()) pass::declare_options(pass.info);
  declare_op_attr<PackedFunc>(passes::kLegalizeAttr, "a function of (attributes, arguments, types)");
  declare_op_attr<PackedFunc>(passes::kConvertLayoutAttr, "a function of (attributes, arguments, types, layouts)");
  declare_op_attr<PackedFunc>(passes::kAlterLayoutAttr, "a function of (attributes, arguments, types, type)");
  declare_op_attr<PackedFunc>(passes::kPrecisionAttr, "a function of (call, type)");
  declare_op_attr<PackedFunc>(passes::kGradientAttr, "a function of (call, gradient)");
}

PassList parse_pass_list(std::string_view text, Ir ir, const cost::Machine& machine) {
  PassList list;
  const auto lists = named_lists(ir, machine);
  const std::vector<Pass> known = make_list(ir, machine);
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view name = trimmed(text.substr(0, comma));
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    if (name.empty()) continue;
    const auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& row) { return row.first == name; });
    if (found != lists.end()) {
      list.passes.insert(list.passes.end(), found->second.begin(), found->second.end());
    } else if (const Pass* pass = find_pass(name, known)) {
      list.passes.push_back(*pass);
      list.named.push_back(pass->info.name);
    } else {
      std::vector<std::string_view> names;
      for (const auto& row : lists) names.push_back(row.first);
      throw_unknown(name, ir, std::move(names));
    }
  }
  return list;
}

}  // namespace headrace::driver
