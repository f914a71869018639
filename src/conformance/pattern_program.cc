#include "conformance/pattern_program.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "ir/expr.h"

namespace headrace::conformance {

namespace {

using namespace relay;

class Writer {
 public:
  std::optional<PatternProgram> write(const DFPattern& pattern) {
    made_.result = text_of(pattern);
    if (!is_whole_) return std::nullopt;
    return std::move(made_);
  }

 private:
  // Each node of the pattern is one value.
  std::string text_of(const DFPattern& pattern) {
    if (const auto known = names_.find(pattern.get()); known != names_.end()) return known->second;
    std::string text = make(pattern);
    names_[pattern.get()] = text;
    return text;
  }

  std::string make(const DFPattern& pattern) {
    if (const auto* either = pattern.as<AltPatternNode>()) return text_of(either->left);
    if (const auto* typed = pattern.as<DataTypePatternNode>()) return text_of(typed->pattern);
    if (const auto* call = pattern.as<CallPatternNode>()) return call_of(*call, {});
    if (const auto* with = pattern.as<AttrPatternNode>(); with != nullptr && with->pattern.is<CallPatternNode>())
      return call_of(*with->pattern.as<CallPatternNode>(), with->attrs);
    const auto* wildcard = pattern.as<WildcardPatternNode>();
    const bool is_constant = pattern.as<ConstantPatternNode>() != nullptr;
    if (!is_constant && pattern.as<VarPatternNode>() == nullptr && (wildcard == nullptr || wildcard->redirect)) {
      is_whole_ = false;
      return "";
    }
    made_.params.push_back(fmt::format("v{}", made_.params.size()));
    if (is_constant) made_.constants.push_back(made_.params.back());
    return "%" + made_.params.back();
  }

  // An attribute as a text writes it; a kind without a text leaves the pattern without a program.
  std::string text_of_attr(const Value& value) {
    if (value.is<int64_t>()) return fmt::format("{}", value.as<int64_t>());
    if (value.is<double>()) return fmt::format("{}f", value.as<double>());
    if (value.is<std::string>()) return fmt::format("\"{}\"", value.as<std::string>());
    if (value.is<Shape>()) return fmt::format("[{}]", fmt::join(value.as<Shape>(), ", "));
    if (!value.is<Array<Value>>()) {
      is_whole_ = false;
      return "";
    }
    std::string items;
    for (const Value& item : value.as<Array<Value>>()) items += (items.empty() ? "" : ", ") + text_of_attr(item);
    return fmt::format("[{}]", items);
  }

  std::string call_of(const CallPatternNode& call, const Map<std::string, Value>& attrs) {
    const auto* named = call.op.as<ExprPatternNode>();
    const auto* op = named == nullptr ? nullptr : named->expr.as<OpNode>();
    if (op == nullptr || !call.args) {
      is_whole_ = false;
      return "";
    }
    MadeCall made{.op = op->name, .args = {}};
    for (const DFPattern& arg : *call.args) made.args.push_back(text_of(arg));
    for (const auto& [key, value] : attrs) {
      made.attrs += fmt::format(", {}={}", key, text_of_attr(value));
      made.given_attrs.insert(key);
    }
    made_.calls.push_back(std::move(made));
    return fmt::format("%{}", made_.calls.size() - 1);
  }

  std::map<const Object*, std::string> names_;
  PatternProgram made_;
  bool is_whole_ = true;
};

}  // namespace

std::optional<PatternProgram> program_of(const DFPattern& pattern) { return Writer().write(pattern); }

PatternProgram doubled(const PatternProgram& program, std::optional<size_t> joined) {
  PatternProgram made = program;
  std::map<std::string, std::string> copies;  // the values of the second copy, by those of the first
  for (size_t i = 0; i < program.calls.size(); ++i)
    copies[fmt::format("%{}", i)] = fmt::format("%{}", i + program.calls.size());
  for (size_t i = 0; i < program.params.size(); ++i) {
    const std::string& param = program.params[i];
    if (joined == i) {
      copies["%" + param] = program.result;
      continue;
    }
    made.params.push_back(fmt::format("w{}", i));
    copies["%" + param] = "%" + made.params.back();
    if (std::count(program.constants.begin(), program.constants.end(), param) > 0)
      made.constants.push_back(made.params.back());
  }
  for (MadeCall call : program.calls) {
    for (std::string& arg : call.args) arg = copies.at(arg);
    made.calls.push_back(std::move(call));
  }
  const std::string& second = copies.at(program.result);
  made.result = joined ? second : fmt::format("({}, {})", program.result, second);
  return made;
}

std::string text_of(const PatternProgram& program, const std::vector<Shape>& shapes) {
  std::string params, body;
  for (size_t i = 0; i < shapes.size(); ++i)
    params +=
        fmt::format("{}%{}: Tensor[({}), float32]", i == 0 ? "" : ", ", program.params[i], fmt::join(shapes[i], ", "));
  for (size_t i = 0; i < program.calls.size(); ++i) {
    const MadeCall& call = program.calls[i];
    body += fmt::format("  %{} = {}({}{});\n", i, call.op, fmt::join(call.args, ", "), call.attrs);
  }
  return fmt::format("def @main({}) {{\n{}  {}\n}}\n", params, body, program.result);
}

}  // namespace headrace::conformance
