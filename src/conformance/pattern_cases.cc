#include <fmt/ranges.h>

#include <functional>
#include <map>

#include "conformance/cases.h"
#include "relay/infer/infer_type.h"

namespace headrace::conformance {

namespace {

using namespace relay;

constexpr size_t kMaxTries = 4000, kMaxCases = 24;

// Shapes that parameters of most ops may have: images, weights of convolutions and dense layers, channels, a scalar.
const std::vector<std::string>& shapes() {
  static const std::vector<std::string> all{"(1, 8, 6, 6)", "(8, 8, 3, 3)", "(3, 8)", "(8, 8)",
                                            "(8,)",         "(8, 1, 1)",    "()"};
  return all;
}

// A program as text, whose parameters have no shapes yet.
class Writer {
 public:
  // Returns whether the pattern is of calls, constants and wildcards, which a text can be made of.
  bool write(const DFPattern& pattern) {
    const std::string root = text_of(pattern);
    body_ = lets_ + root;
    return is_whole_;
  }
  const std::string& body() const { return body_; }
  const std::vector<std::string>& params() const { return params_; }
  const std::vector<std::string>& constants() const { return constants_; }

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
    params_.push_back(fmt::format("v{}", params_.size()));
    if (is_constant) constants_.push_back(params_.back());
    return "%" + params_.back();
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
    std::string args;
    for (const DFPattern& arg : *call.args) args += (args.empty() ? "" : ", ") + text_of(arg);
    for (const auto& [key, value] : attrs) args += fmt::format(", {}={}", key, text_of_attr(value));
    const std::string name = fmt::format("%t{}", num_lets_++);
    lets_ += fmt::format("let {} = {}({});\n", name, op->name, args);
    return name;
  }

  std::map<const Object*, std::string> names_;
  std::string lets_, body_;
  std::vector<std::string> params_, constants_;
  size_t num_lets_ = 0;
  bool is_whole_ = true;
};

}  // namespace

std::vector<Case> pattern_cases(const partition::CompositePattern& pattern) {
  Writer writer;
  std::vector<Case> cases;
  if (!writer.write(pattern.pattern)) return cases;
  const size_t num_params = writer.params().size();
  std::vector<size_t> choice(num_params, 0);
  for (size_t tries = 0; tries < kMaxTries && cases.size() < kMaxCases; ++tries) {
    std::string params;
    for (size_t i = 0; i < num_params; ++i)
      params += fmt::format("{}%{}: Tensor[{}, float32]", i == 0 ? "" : ", ", writer.params()[i], shapes()[choice[i]]);
    Case made{.name = fmt::format("{}/{}", pattern.name, cases.size()),
              .text = fmt::format("def @main({}) {{\n{}\n}}\n", params, writer.body()),
              .constants = writer.constants()};
    try {
      module_of(made);
      cases.push_back(std::move(made));
    } catch (const UserError&) {  // these shapes do not fit each other
    }
    size_t digit = 0;
    while (digit < num_params && ++choice[digit] == shapes().size()) choice[digit++] = 0;
    if (digit == num_params) break;
  }
  return cases;
}

}  // namespace headrace::conformance
