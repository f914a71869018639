#include "partition/compose.h"

#include "object/function.h"
#include "passes/rewrite/effects.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/partition.h"

namespace headrace::partition {

using relay::FunctionNode;

namespace {

constexpr const char* kTableOption = "pattern_table";

// Returns the module with the matches of one pattern as functions; the module itself when there are none.
IRModule merge_pattern(const IRModule& module, const CompositePattern& entry) {
  const relay::GroupOptions options{
      .enter = [](const Expr& function) { return relay::is_entered(function); },
      .check = entry.check,
  };
  const DictAttrs attrs{{relay::kComposite, Value(entry.name)}};
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || !relay::is_entered(function)) continue;
    const Expr body = relay::partition_pattern(entry.pattern, node->body, attrs, options);
    if (body == node->body) continue;
    if (!result) result = snapshot(module);
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.body = body; }), true);
  }
  return result ? relay::infer_type(result) : module;
}

// Throws for an entry of a table.
[[noreturn]] void throw_wrong_entry(size_t index, std::string_view what) {
  throw_user_error("MergeComposite: entry {} of the pattern table {}; it is (name, pattern) or (name, pattern, check)",
                   index, what);
}

std::function<bool(const Expr&)> read_check(const Value& value, const std::string& name) {
  if (value.is_none()) return {};
  return [check = value.as<PackedFunc>(), name](const Expr& root) {
    const Value answer = check(root);
    if (!answer.is<bool>())
      throw_user_error("the check of the pattern '{}' gave {}, expected a bool", name, kind_name(answer.raw()));
    return answer.as<bool>();
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
    entry.check = read_check(items[2], entry.name);
  }
  return entry;
}

// A table of one run of the pass.
class ReadTable {
 public:
  explicit ReadTable(const Value& value) : entries_(read_table(value)) {}
  ReadTable(const ReadTable&) = delete;
  ReadTable& operator=(const ReadTable&) = delete;
  ~ReadTable() {
    for (const CompositePattern& entry : entries_) {
      if (entry.is_read) relay::release_recursions(entry.pattern);
    }
  }
  const std::vector<CompositePattern>& entries() const { return entries_; }

 private:
  std::vector<CompositePattern> entries_;
};

bool is_table(const RawValue& raw) {
  return ValueTraits<std::string>::matches(raw) || raw.type_index == type_index::kArray;
}

}  // namespace

IRModule merge_composite(const IRModule& module, const std::vector<CompositePattern>& table) {
  const IRModule typed = relay::infer_type(module);
  const IRModule ordered = passes::in_order(typed).module;
  IRModule result = ordered;
  for (const CompositePattern& entry : table) result = merge_pattern(result, entry);
  return result == ordered ? typed : result;
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

pass::Pass merging_composites() {
  pass::ConfigKey option{
      .name = kTableOption,
      .kind = "pattern table",
      .doc = "pairs of a name and a pattern, perhaps with a check, the first of the highest priority; or a text",
      .accepts = &is_table,
      .default_text = {},
      .check = [](const Value& value) { ReadTable{value}; },
  };
  return {{.name = "MergeComposite",
           .opt_level = 0,
           .summary = "what the patterns of a backend match becomes functions that are marked Composite",
           .options = {std::move(option)}},
          [](const IRModule& module, const pass::PassContext& context) {
            const auto table = context.option<Value>("relay.MergeComposite.pattern_table");
            return table ? merge_composite(module, ReadTable(*table).entries()) : module;
          }};
}

}  // namespace headrace::partition
