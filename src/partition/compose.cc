#include "partition/compose.h"

#include <memory>

#include "object/function.h"
#include "passes/rewrite/effects.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/partition.h"

namespace headrace::partition {

using relay::FunctionNode;

namespace {

constexpr const char* kTableOption = "pattern_table";

// The graphs of the bodies of a module's functions. A pattern that matches nothing in a body leaves its graph to the
// next one.
class BodyGraphs {
 public:
  const relay::ExprIndex& of(const Expr& body) {
    auto& graph = graphs_[body.object()];
    if (!graph) graph = std::make_unique<relay::ExprIndex>(body);
    return *graph;
  }
  // Forgets the graphs of a module that is no more.
  void clear() { graphs_.clear(); }

 private:
  std::unordered_map<const Object*, std::unique_ptr<relay::ExprIndex>> graphs_;
};

// Returns whether types stay as they are when a group becomes a function. Inference follows the values of shapes, and
// not through the parameters and the result of a function.
bool keeps_types(const relay::PatternGroup& group, const relay::TypedModule& typed) {
  const auto values = typed.values.find(group.root.get());
  if (values != typed.values.end() && !std::all_of(values->second.begin(), values->second.end(), is_any)) return false;
  if (!relay::has_shape_input(group)) return true;
  try {
    relay::infer_type(Expr(relay::function_of(group, 0)), typed.module);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// Makes the matches of one pattern functions. Returns whether there are any.
bool merge_pattern(relay::TypedModule& typed, const CompositePattern& entry, BodyGraphs& graphs) {
  const relay::PatternIndex pattern(entry.pattern);
  const relay::GroupOptions options{
      .enter = [](const Expr& function) { return relay::is_entered(function); },
      .accepts =
          [&](const relay::PatternGroup& group, const Expr& shown) {
            return keeps_types(group, typed) && (!entry.accepts || entry.accepts(group, shown).ok());
          },
  };
  const DictAttrs attrs{{relay::kComposite, Value(entry.name)}};
  IRModule result;
  for (const auto& [var, function] : typed.module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || !relay::is_entered(function)) continue;
    const Expr body = relay::partition_graph(pattern, graphs.of(node->body), attrs, options);
    if (body == node->body) continue;
    if (!result) result = snapshot(typed.module);
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  if (!result) return false;
  graphs.clear();
  typed = relay::infer_type_and_values(result);
  return true;
}

// Throws for an entry of a table.
[[noreturn]] void throw_wrong_entry(size_t index, std::string_view what) {
  throw_user_error("entry {} of the pattern table {}; it is (name, pattern) or (name, pattern, check)", index, what);
}

std::function<CheckAnswer(const relay::PatternGroup&, const Expr&)> read_check(const Value& value,
                                                                               const std::string& name) {
  if (value.is_none()) return {};
  const std::string source = fmt::format("the check of the pattern '{}'", name);
  return [check = value.as<PackedFunc>(), source](const relay::PatternGroup&, const Expr& shown) -> CheckAnswer {
    return read_answer(check(shown), source);
  };
}

CompositePattern read_entry(const Value& value, size_t index) {
  if (!value.is<Array<Value>>()) throw_wrong_entry(index, fmt::format("is a {}", kind_name(value.raw())));
  const auto items = value.as<Array<Value>>();
  if (items.size() != 2 && items.size() != 3) throw_wrong_entry(index, fmt::format("has {} items", items.size()));
  if (!items[0].is<std::string>() || items[0].as<std::string>().empty()) throw_wrong_entry(index, "has no name");
  CompositePattern entry{.name = items[0].as<std::string>(), .pattern = {}};
  if (items[1].is<std::string>()) {
    entry.pattern = relay::parse_pattern(items[1].as<std::string>(), entry.name);
    entry.is_read = true;
  } else {
    if (items[1].as_node<relay::DFPatternNode>() == nullptr)
      throw_wrong_entry(index, fmt::format("has a {} for its pattern", kind_name(items[1].raw())));
    entry.pattern = items[1].as<relay::DFPattern>();
  }
  if (items.size() == 3) {
    if (!items[2].is<PackedFunc>())
      throw_wrong_entry(index, fmt::format("has a {} for its check", kind_name(items[2].raw())));
    entry.accepts = read_check(items[2], entry.name);
  }
  return entry;
}

bool is_table(const RawValue& raw) {
  return ValueTraits<std::string>::matches(raw) || raw.type_index == type_index::kArray;
}

}  // namespace

IRModule merge_composite(const IRModule& module, std::span<const CompositePattern> table,
                         const std::function<void(const IRModule&)>& on_program) {
  const IRModule before = relay::infer_type(module);
  relay::TypedModule typed = relay::infer_type_and_values(passes::in_order(before).module);
  BodyGraphs graphs;
  bool has_merged = false;
  if (on_program) on_program(typed.module);
  for (const CompositePattern& entry : table) {
    if (!merge_pattern(typed, entry, graphs)) continue;
    has_merged = true;
    if (on_program) on_program(typed.module);
  }
  return has_merged ? typed.module : before;
}

std::vector<CompositePattern> read_table(const Value& value) {
  std::vector<CompositePattern> table;
  if (value.is<std::string>()) {
    for (auto& [name, pattern] : relay::parse_pattern_table(value.as<std::string>(), kTableOption))
      table.push_back({.name = name, .pattern = pattern, .is_read = true});
    return table;
  }
  const auto entries = value.as<Array<Value>>();
  for (size_t i = 0; i < entries.size(); ++i) table.push_back(read_entry(entries[i], i));
  return table;
}

PatternTable::PatternTable(const Value& value) : entries_(read_table(value)) {}

PatternTable::~PatternTable() {
  for (const CompositePattern& entry : entries_) {
    if (entry.is_read) relay::release_recursions(entry.pattern);
  }
}

pass::Pass merging_composites() {
  pass::ConfigKey option{
      .name = kTableOption,
      .kind = "pattern table",
      .doc = "pairs of a name and a pattern, perhaps with a check, the first of the highest priority; or a text",
      .accepts = &is_table,
      .default_text = {},
      .check = [](const Value& value) { PatternTable{value}; },
  };
  return {{.name = "MergeComposite",
           .opt_level = 0,
           .summary = "calls that the patterns of a backend match become functions that are marked Composite",
           .options = {std::move(option)}},
          [](const IRModule& module, const pass::PassContext& context) {
            const auto table = context.option<Value>("relay.MergeComposite.pattern_table");
            return table ? merge_composite(module, PatternTable(*table).entries()) : module;
          }};
}

}  // namespace headrace::partition
