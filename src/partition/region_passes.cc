#include "partition/region_passes.h"

#include "object/repr.h"
#include "partition/annotate.h"
#include "partition/compiler_functions.h"
#include "partition/extract.h"
#include "partition/merge.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/result_types.h"

namespace headrace::partition {

using pass::config_key;
using pass::Pass;
using pass::PassContext;

namespace {

constexpr const char* kTargets = "relay.AnnotateTarget.targets";
constexpr const char* kGlobalVars = "relay.InlineCompilerFunctionsBoundTo.global_vars";

// A text stands for a list of one; names on a command line are separated by commas.
std::vector<std::string> names_in(const Value& value) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view text) {
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find(',', begin), text.size());
      names.emplace_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
  };
  if (value.is<std::string>()) add(value.as<std::string>());
  if (!value.is<Array<Value>>()) return names;
  for (const Value& item : value.as<Array<Value>>()) {
    if (item.is<GlobalVar>()) names.push_back(item.as<GlobalVar>()->name_hint);
    if (item.is<std::string>()) add(item.as<std::string>());
  }
  return names;
}

bool is_name_or_names(const RawValue& raw) {
  return ValueTraits<std::string>::matches(raw) || ValueTraits<Array<std::string>>::matches(raw);
}

bool is_functions(const RawValue& raw) { return is_name_or_names(raw) || ValueTraits<Array<GlobalVar>>::matches(raw); }

std::vector<std::string> names_of(const PassContext& context, const char* key) {
  const auto value = context.config.get(key);
  return value ? names_in(*value) : std::vector<std::string>();
}

AnnotateOptions annotate_options(const PassContext& context) {
  AnnotateOptions options;
  options.targets = names_of(context, kTargets);
  options.include_non_call_ops =
      context.option<bool>("relay.AnnotateTarget.include_non_call_ops").value_or(options.include_non_call_ops);
  return options;
}

PartitionOptions partition_options(const PassContext& context) {
  PartitionOptions options;
  options.mod_name = context.option<std::string>("relay.PartitionGraph.mod_name").value_or(options.mod_name);
  options.bind_constants = context.option<bool>("relay.PartitionGraph.bind_constants").value_or(options.bind_constants);
  return options;
}

// Relay's passes over regions end with InferType, which writes the types of results, too: programs compare what they
// give with programs that they typed.
IRModule with_types(const IRModule& module) { return relay::with_result_types(relay::infer_type(module)); }

Pass annotating() {
  return {
      {.name = "AnnotateTarget",
       .summary = "calls that other compilers support are marked by compiler_begin and compiler_end",
       .options = {{"targets", "str or Array[str]", "the compilers, in the order of their priority", &is_name_or_names},
                   config_key<bool>("include_non_call_ops", "whether tuples and references are marked too", "true")}},
      [](const IRModule& m, const PassContext& c) { return with_types(annotate_target(m, annotate_options(c))); }};
}

Pass partitioning() {
  return {{.name = "PartitionGraph",
           .summary = "parts that compiler_begin and compiler_end enclose become functions for other compilers",
           .options = {config_key<std::string>("mod_name", "part of the names of the functions", "default"),
                       config_key<bool>("bind_constants", "whether constants are inside of the functions", "true")},
           .runs_after = {"MergeComposite", "AnnotateTarget", "MergeCompilerRegions"}},
          [](const IRModule& m, const PassContext& c) {
            return with_types(partition_graph(m, partition_options(c)).module);
          }};
}

// A pass whose one option is the name of a compiler.
template <IRModule (*pass)(const IRModule&, const std::string&)>
Pass for_compiler(const std::string& name, std::string summary) {
  const std::string key = "relay." + name + ".compiler_filter";
  return {{.name = name,
           .summary = std::move(summary),
           .options = {config_key<std::string>("compiler_filter", "one compiler; empty: all", "")}},
          [key](const IRModule& m, const PassContext& c) { return pass(m, c.option<std::string>(key).value_or("")); }};
}

}  // namespace

std::vector<Pass> region_passes() {
  return {
      annotating(),
      // Before PartitionGraph, which makes a function of each part that it finds.
      {{.name = "MergeCompilerRegions", .summary = "neighbouring parts for one compiler become one"},
       [](const IRModule& m, const PassContext&) { return with_types(merge_compiler_regions(m)); }},
      partitioning(),
      {{.name = "InlineCompilerFunctionsBoundTo",
        .summary = "calls of functions for other compilers become their bodies",
        .options = {{"global_vars", "Array[relay.GlobalVar]", "the functions", &is_functions}}},
       [](const IRModule& m, const PassContext& c) { return inline_compiler_functions(m, names_of(c, kGlobalVars)); }},
      for_compiler<outline_compiler_functions>("OutlineCompilerFunctionsWithExistingGlobalSymbols",
                                               "function literals for other compilers become functions of the module"),
      for_compiler<mark_compiler_functions_as_extern>("MarkCompilerFunctionsAsExtern",
                                                      "functions for other compilers are marked as compiled already"),
  };
}

}  // namespace headrace::partition
