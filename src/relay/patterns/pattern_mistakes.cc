#include "relay/patterns/pattern_mistakes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ir/expr.h"
#include "object/reflect.h"
#include "relay/patterns/pattern_text.h"
#include "relay/user_attrs.h"

namespace headrace::relay {

namespace {

const OpNode* op_of(const CallPatternNode& call) {
  const auto* named = call.op.as<ExprPatternNode>();
  return named == nullptr ? nullptr : named->expr.as<OpNode>();
}

// Returns the call of an op that a pattern with further conditions is about; null where it is about something else.
const CallPatternNode* call_under(const DFPattern& pattern) {
  const DFPatternNode* at = pattern.get();
  while (true) {
    const DFPattern part(ref(at));
    if (const auto* call = part.as<CallPatternNode>()) return op_of(*call) == nullptr ? nullptr : call;
    if (const auto* typed = part.as<TypePatternNode>()) {
      at = typed->pattern.get();
    } else if (const auto* shaped = part.as<ShapePatternNode>()) {
      at = shaped->pattern.get();
    } else if (const auto* of_dtype = part.as<DataTypePatternNode>()) {
      at = of_dtype->pattern.get();
    } else if (const auto* with = part.as<AttrPatternNode>()) {
      at = with->pattern.get();
    } else {
      return nullptr;
    }
  }
}

// A pattern that is checked may have parts without a text.
std::string place_of(const DFPattern& pattern) {
  try {
    std::string text = print_pattern(pattern);
    std::replace(text.begin(), text.end(), '\n', ' ');
    return " in " + text;
  } catch (const UserError&) {
    return "";
  }
}

std::string mistake_in_arguments(const CallPatternNode& call) {
  const OpNode* op = op_of(call);
  if (op == nullptr || !call.args || op->num_inputs < 0) return "";
  const size_t count = call.args->size();
  if (count == static_cast<size_t>(op->num_inputs)) return "";
  return fmt::format("{} takes {} argument{} and has {}", op->name, op->num_inputs, op->num_inputs == 1 ? "" : "s",
                     count);
}

std::string mistake_in_attributes(const AttrPatternNode& with) {
  const CallPatternNode* call = call_under(with.pattern);
  const OpNode* op = call == nullptr ? nullptr : op_of(*call);
  if (op == nullptr || op->find(kAttrSchema) != nullptr) return "";
  const TypeInfo* attributes = find_type(op->attrs_type_key);
  for (const auto& [key, value] : with.attrs) {
    std::vector<std::string> known;
    for (size_t i = 0; attributes != nullptr && i < attributes->fields.size(); ++i)
      known.push_back(attributes->fields[i].name);
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return fmt::format("{} has no attribute '{}'; {}", op->name, key,
                       known.empty() ? "it has none" : fmt::format("it has {}", fmt::join(known, ", ")));
  }
  return "";
}

}  // namespace

std::string mistake_in(const DFPattern& pattern) {
  std::vector<DFPattern> waiting{pattern};
  std::set<const Object*> seen;
  while (!waiting.empty()) {
    const DFPattern one = waiting.back();
    waiting.pop_back();
    if (!one || !seen.insert(one.get()).second) continue;
    std::string mistake;
    if (const auto* call = one.as<CallPatternNode>()) mistake = mistake_in_arguments(*call);
    if (const auto* with = one.as<AttrPatternNode>()) mistake = mistake_in_attributes(*with);
    if (!mistake.empty()) return mistake + place_of(one);
    std::vector<DFPattern> children = children_of(one);
    waiting.insert(waiting.end(), children.rbegin(), children.rend());
  }
  return "";
}

}  // namespace headrace::relay
