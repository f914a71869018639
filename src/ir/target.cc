#include "ir/target.h"

#include <charconv>

namespace headrace {

namespace {

enum class OptionType : uint8_t { text, list, count };

struct TargetOption {
  std::string_view name;
  OptionType type;
};

constexpr TargetOption kLlvmOptions[] = {
    {"mtriple", OptionType::text},    // the machine; without it this one's
    {"mcpu", OptionType::text},       // the processor, by LLVM's name; without it, or "native", this machine's
    {"mattr", OptionType::list},      // its features, +NAME or -NAME
    {"num-cores", OptionType::count}  // threads that an artifact runs with unless told otherwise
};

struct TargetKind {
  std::string_view name;
  std::span<const TargetOption> options;
};

constexpr TargetKind kKinds[] = {{"llvm", kLlvmOptions}};

const TargetKind& find_kind(std::string_view name) {
  std::vector<std::string_view> known;
  for (const TargetKind& kind : kKinds) {
    if (kind.name == name) return kind;
    known.push_back(kind.name);
  }
  throw_user_error("there is no kind of target '{}'; the kinds are {}, as in: llvm -mcpu=x86-64-v3", name,
                   fmt::join(known, ", "));
}

const TargetOption& find_option(const TargetKind& kind, std::string_view name) {
  std::vector<std::string> known;
  for (const TargetOption& option : kind.options) {
    if (option.name == name) return option;
    known.push_back(fmt::format("-{}=", option.name));
  }
  throw_user_error("a target of kind {} has no option '{}'; its options are {}", kind.name, name,
                   fmt::join(known, ", "));
}

Array<std::string> split_list(std::string_view text) {
  Array<std::string> words;
  while (true) {
    const size_t comma = text.find(',');
    words.push_back(std::string(text.substr(0, comma)));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

Value parse_value(const TargetOption& option, std::string_view text) {
  if (text.empty()) throw_user_error("the target's option -{}= has no value", option.name);
  if (option.type != OptionType::count) return Value(std::string(text));
  int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size())
    throw_user_error("the target's option -{}={} is no whole number", option.name, text);
  return Value(count);
}

void check_word(const TargetOption& option, const std::string& word) {
  const bool is_list = option.type == OptionType::list;
  if (word.empty() || word.find_first_of(is_list ? " \t," : " \t") != std::string::npos)
    throw_user_error("the target's option {} has '{}', which is no single word", option.name, word);
}

// The value as the option keeps it.
Value checked_value(const TargetOption& option, const Value& value) {
  if (option.type == OptionType::text && value.is<std::string>()) {
    check_word(option, value.as<std::string>());
    return value;
  }
  if (option.type == OptionType::list && (value.is<std::string>() || value.is<Array<std::string>>())) {
    const auto words = value.is<std::string>() ? split_list(value.as<std::string>()) : value.as<Array<std::string>>();
    for (const std::string& word : words) check_word(option, word);
    return Value(words);
  }
  if (option.type == OptionType::count && value.type_index() == type_index::kInt) {
    if (value.as<int64_t>() >= 1) return value;
    throw_user_error("the target's option {} is {}; it is at least 1", option.name, value.as<int64_t>());
  }
  constexpr std::string_view kTypes[] = {"a text", "a list of texts", "a whole number"};
  throw_user_error("the target's option {} is {}, got {}", option.name, kTypes[static_cast<size_t>(option.type)],
                   repr(value));
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = text.find_first_not_of(" \t"); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(" \t", end);
  }
  return words;
}

template <typename T>
T given(const TargetNode& target, const std::string& option) {
  const std::optional<Value> value = target.attrs.get(option);
  return value ? value->as<T>() : T();
}

}  // namespace

void TargetNode::fields(FieldList<TargetNode>& f) {
  f.field<&TargetNode::kind>("kind").field<&TargetNode::attrs>("attrs");
}

std::string TargetNode::text(const std::string& option) const { return given<std::string>(*this, option); }
Array<std::string> TargetNode::list(const std::string& option) const {
  return given<Array<std::string>>(*this, option);
}
int64_t TargetNode::count(const std::string& option) const { return given<int64_t>(*this, option); }

Target make_target(const std::string& kind, const Map<std::string, Value>& attrs) {
  const TargetKind& known = find_kind(kind);
  for (const auto& [name, value] : attrs) find_option(known, name);
  Target target = make_object<TargetNode>();
  target->kind = kind;
  for (const TargetOption& option : known.options) {
    const std::string name(option.name);
    const std::optional<Value> value = attrs.get(name);
    if (value && !value->is_none()) target->attrs.set(name, checked_value(option, *value));
  }
  return target;
}

Target parse_target(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.empty()) throw_user_error("the target is empty; write its kind first, as in: llvm -mcpu=x86-64-v3");
  const TargetKind& kind = find_kind(words[0]);
  Map<std::string, Value> attrs;
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t name_at = words[i].starts_with("--") ? 2 : 1, equals = words[i].find('=');
    if (words[i][0] != '-' || equals == std::string_view::npos || equals <= name_at)
      throw_user_error("'{}' is no option of a target; write -NAME=VALUE, as in: llvm -mcpu=x86-64-v3", words[i]);
    const std::string name(words[i].substr(name_at, equals - name_at));
    if (attrs.contains(name)) throw_user_error("the target's option -{}= is given twice", name);
    attrs.set(name, parse_value(find_option(kind, name), words[i].substr(equals + 1)));
  }
  return make_target(std::string(kind.name), attrs);
}

std::string to_string(const Target& target) {
  std::string text = target->kind;
  for (const auto& [name, value] : target->attrs) {
    const std::string shown = value.is<std::string>() ? value.as<std::string>()
                              : value.is<int64_t>()   ? std::to_string(value.as<int64_t>())
                                                    : fmt::format("{}", fmt::join(value.as<Array<std::string>>(), ","));
    text += fmt::format(" -{}={}", name, shown);
  }
  return text;
}

}  // namespace headrace
