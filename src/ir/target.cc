#include "ir/target.h"

#include <algorithm>
#include <charconv>

#include "ir/target_json.h"
#include "ir/target_tag.h"

namespace headrace {

namespace {

using Config = Map<std::string, Value>;
using OptionType = TargetOptionType;

constexpr const char* kExample = "as in: llvm -mcpu=x86-64-v3";
constexpr std::string_view kBlanks = " \t\r\n";

// The option "keys", which every kind has.
const TargetOption& keys_option() {
  static const TargetOption& option = *new TargetOption{.name = "keys", .type = OptionType::texts, .doc = {}};
  return option;
}
const TargetOption& tag_option() {
  static const TargetOption& option = *new TargetOption{.name = "tag", .type = OptionType::text, .doc = {}};
  return option;
}
bool is_common(std::string_view option) { return option == "keys" || option == "host" || option == "tag"; }

// Whether something is the host of another target: it has none of its own.
enum class Role : uint8_t { target, host };

[[noreturn]] void throw_host_of_host() {
  throw_user_error("a target's host has no host of its own; leave the inner one out");
}

void check_option_name(const TargetKindNode& kind, std::string_view name) {
  if (is_common(name) || kind.find_option(name) != nullptr) return;
  for (const RefusedTargetOption& refused : kind.refused) {
    if (refused.name == name)
      throw_user_error("a target of kind {} takes no option '{}': {}", kind.name, name, refused.reason);
  }
  std::vector<std::string> known;
  for (const TargetOption& option : kind.options) known.push_back(fmt::format("-{}=", option.name));
  for (const char* common : {"-keys=", "-host=", "-tag="}) known.emplace_back(common);
  throw_user_error("a target of kind {} has no option '{}'; its options are {}", kind.name, name,
                   fmt::join(known, ", "));
}

std::optional<Value> find_given(const Config& options, const std::string& name) {
  const std::optional<Value> value = options.get(name);
  return value && !value->is_none() ? value : std::nullopt;
}

// Keys and options of a target, checked, in their order.
void set_options(TargetNode& target, const Config& options) {
  const TargetKindNode& kind = *target.kind;
  for (const auto& [name, value] : options) check_option_name(kind, name);
  std::vector<std::string> keys;
  if (const auto given = find_given(options, "keys"))
    keys = check_option_value(keys_option(), *given).as<Array<std::string>>().to_vector();
  keys.insert(keys.end(), kind.default_keys.begin(), kind.default_keys.end());
  target.keys = {};
  for (auto key = keys.begin(); key != keys.end(); ++key) {
    if (std::find(keys.begin(), key, *key) == key) target.keys.push_back(*key);
  }
  target.attrs = {};
  for (const TargetOption& option : kind.options) {
    const Value value = find_given(options, option.name).value_or(option.default_value);
    if (!value.is_none()) target.attrs.set(option.name, check_option_value(option, value));
  }
}

// Applies the kind's own parser.
void run_parser(TargetNode& target) {
  if (!target.kind->parse) return;
  Config config{{"keys", Value(target.keys)}};
  for (const auto& [name, value] : target.attrs) config.set(name, value);
  const Config parsed = target.kind->parse(config);
  for (const char* name : {"host", "tag"}) {
    if (parsed.contains(name))
      throw_user_error("the parser of the target kind '{}' returned '{}', which only the target itself may set",
                       target.kind->name, name);
  }
  set_options(target, parsed);
}

Target make_from_config(const Config& config, Role role);
Target parse(std::string_view text, Role role);

Target to_target(const Value& value, Role role) {
  if (value.as_node<TargetNode>() != nullptr) {
    const auto target = value.as<Target>();
    if (role == Role::host && target->host) throw_host_of_host();
    return target;
  }
  if (value.is<std::string>()) return parse(value.as<std::string>(), role);
  if (!value.is_none() && value.is<Config>()) return make_from_config(value.as<Config>(), role);
  throw_user_error("{}: expected a str, a dict or a Target, got {}", role == Role::host ? "host" : "target",
                   value.as_node<MapObj>() != nullptr ? "a dict whose keys are not all str" : kind_name(value.raw()));
}

Target make(const std::string& kind, const Config& options, Role role) {
  Target target = make_object<TargetNode>();
  target->kind = get_target_kind(kind);
  set_options(*target, options);
  run_parser(*target);
  const auto tag = find_given(options, "tag");
  if (tag && !(tag->is<std::string>() && tag->as<std::string>().empty()))
    target->tag = check_option_value(tag_option(), *tag).as<std::string>();
  if (const auto host = find_given(options, "host")) {
    if (role == Role::host) throw_host_of_host();
    target->host = to_target(*host, Role::host);
  }
  return target;
}

Target make_from_config(const Config& config, Role role) {
  const auto kind = find_given(config, "kind");
  if (!kind || !kind->is<std::string>())
    throw_user_error("the target's dict needs a \"kind\", as in {{\"kind\": \"llvm\", \"mcpu\": \"x86-64-v3\"}}");
  Config options = config;
  options.erase("kind");
  return make(kind->as<std::string>(), options, role);
}

// Splits a text at blanks; quotes keep words together.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool is_inside = false;  // within a word
  char quote = 0;
  for (const char c : text) {
    if (quote == 0 && kBlanks.find(c) != std::string_view::npos) {
      is_inside = false;
      continue;
    }
    if (!is_inside) words.emplace_back();
    is_inside = true;
    if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) throw_user_error("the target has a quote ({}) without its partner: {}", quote, text);
  return words;
}

Value parse_whole(const TargetOption& option, const std::string& text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw_user_error("the target's option -{}={} is not a whole number", option.name, text);
  return Value(number);
}

Value parse_truth(const TargetOption& option, const std::string& text) {
  if (text == "true" || text == "1") return Value(true);
  if (text == "false" || text == "0") return Value(false);
  throw_user_error("the target's option -{}={} is neither true nor false", option.name, text);
}

// Parses an option as text has it, "-mcpu=znver4".
std::pair<std::string, Value> parse_option(const TargetKindNode& kind, const std::string& word) {
  const size_t name_at = word.starts_with("--") ? 2 : 1, equals = word.find('=');
  if (word[0] != '-' || equals == std::string::npos || equals <= name_at)
    throw_user_error("'{}' is not an option of a target; write -NAME=VALUE, {}", word, kExample);
  const std::string name = word.substr(name_at, equals - name_at), text = word.substr(equals + 1);
  check_option_name(kind, name);
  if (text.empty()) throw_user_error("the target's option -{}= has no value", name);
  const TargetOption* option = kind.find_option(name);
  if (option != nullptr && option->type == OptionType::whole) return {name, parse_whole(*option, text)};
  if (option != nullptr && option->type == OptionType::truth) return {name, parse_truth(*option, text)};
  return {name, Value(text)};
}

Target parse(std::string_view text, Role role) {
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  if (text.substr(begin).starts_with('{')) return make_from_config(parse_target_json(text), role);
  const std::vector<std::string> words = words_of(text);
  if (words.empty() || words[0].empty())
    throw_user_error("the target is empty; write its kind first, {}; or a tag, as in: cpu/x86-64-v3", kExample);
  if (words[0].find('/') != std::string::npos) {
    if (words.size() > 1) throw_user_error("the tag {} takes no options; leave {} out", words[0], words[1]);
    return to_target(Value(get_tagged_target(words[0])), role);
  }
  const TargetKind kind = get_target_kind(words[0]);
  Config options;
  for (size_t i = 1; i < words.size(); ++i) {
    auto [name, value] = parse_option(*kind, words[i]);
    if (options.contains(name)) throw_user_error("the target's option -{}= is given twice", name);
    options.set(std::move(name), std::move(value));
  }
  return make(kind->name, options, role);
}

std::string text_of(const Value& value) {
  if (value.type_index() == type_index::kBool) return value.as<bool>() ? "true" : "false";
  if (value.is<int64_t>()) return std::to_string(value.as<int64_t>());
  if (value.is<std::string>()) return value.as<std::string>();
  // A node that was changed field by field may hold anything; checked_target reports it.
  if (!value.is<Array<std::string>>()) return repr(value);
  return fmt::format("{}", fmt::join(value.as<Array<std::string>>(), ","));
}

// Returns a text, in quotes where it has blanks. A host's text contains one kind of quotes at most.
std::string quoted_word(const std::string& text) {
  if (text.find_first_of(kBlanks) == std::string::npos) return text;
  const char quote = text.find('\'') == std::string::npos ? '\'' : '"';
  return quote + text + quote;
}

// Refuses a host with a host: nodes put together field by field may chain hosts without end.
void check_host(const TargetNode& target) {
  if (target.host && target.host->host) throw_host_of_host();
}

template <typename T>
T given(const TargetNode& target, const std::string& option) {
  const std::optional<Value> value = target.attrs.get(option);
  return value ? value->as<T>() : T();
}

}  // namespace

void TargetNode::fields(FieldList<TargetNode>& f) {
  f.field<&TargetNode::kind>("kind")
      .field<&TargetNode::host>("host", {.optional = true, .doc = "of the code that calls it; none: the target itself"})
      .field<&TargetNode::tag>("tag", {.ignore = true, .doc = "the name it was made by"})
      .field<&TargetNode::keys>("keys", {.doc = "what code for it may use, the most special first"})
      .field<&TargetNode::attrs>("attrs", {.doc = "values by option"});
}

std::string TargetNode::text(const std::string& option) const { return given<std::string>(*this, option); }
Array<std::string> TargetNode::list(const std::string& option) const {
  return given<Array<std::string>>(*this, option);
}
int64_t TargetNode::count(const std::string& option) const { return given<int64_t>(*this, option); }

Target make_target(const std::string& kind, const Config& options) { return make(kind, options, Role::target); }

Target make_target_from_config(const Config& config) { return make_from_config(config, Role::target); }

Target parse_target(std::string_view text) { return parse(text, Role::target); }

Target to_target(const Value& value) { return to_target(value, Role::target); }

Target with_host(const Target& target, const Target& host) {
  if (host && host->host) throw_host_of_host();
  return copy_with(*target, [&](TargetNode& copy) { copy.host = host; });
}

Map<std::string, Value> export_target(const Target& target) {
  check_host(*target);
  Config config{{"kind", Value(target->kind->name)}, {"tag", Value(target->tag)}, {"keys", Value(target->keys)}};
  if (target->host) config.set("host", Value(export_target(target->host)));
  for (const auto& [name, value] : target->attrs) config.set(name, value);
  return config;
}

Target checked_target(const Target& target) { return make_target_from_config(export_target(target)); }

std::string to_string(const Target& target) {
  check_host(*target);
  std::string text = target->kind->name;
  if (!target->keys.empty()) text += fmt::format(" -keys={}", fmt::join(target->keys, ","));
  for (const auto& [name, value] : target->attrs) text += fmt::format(" -{}={}", name, quoted_word(text_of(value)));
  if (target->host) text += fmt::format(" -host={}", quoted_word(to_string(target->host)));
  return text;
}

}  // namespace headrace
