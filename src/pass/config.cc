#include "pass/config.h"

#include <charconv>
#include <map>
#include <mutex>

#include "ir/near_names.h"
#include "ir/target_kind.h"
#include "object/function.h"

namespace headrace::pass {

namespace {

// Entries are never removed and never move.
struct KeyTable {
  std::mutex mutex;
  std::map<std::string, ConfigKey, std::less<>> keys;
};

KeyTable& table() {
  static KeyTable& instance = *new KeyTable;
  return instance;
}

constexpr std::string_view kOptions = ".options";

ConfigKey dict_key(const std::string& name, const std::string& doc) {
  ConfigKey key = config_key<Map<std::string, Value>>(name, doc);
  key.kind = "dict";
  return key;
}

}  // namespace

void declare_config_key(ConfigKey key) {
  std::lock_guard lock(table().mutex);
  table().keys.try_emplace(key.name, key);
}

const ConfigKey* find_config_key(std::string_view name) {
  const auto backend = backend_of_key(name);
  if (backend && find_global(kRegionCompilerPrefix + *backend)) declare_backend_key(*backend);
  std::lock_guard lock(table().mutex);
  const auto found = table().keys.find(name);
  return found == table().keys.end() ? nullptr : &found->second;
}

void register_config_key(const std::string& name, const std::string& kind, const std::string& doc) {
  const bool is_word = !name.empty() && name.find_first_of(" \t\r\n=,;") == std::string::npos;
  if (!is_word) throw_user_error("'{}' is not a key of a configuration; give it one word, as my.pass.option", name);
  const ConfigKey keys[] = {config_key<bool>(name, doc),
                            config_key<int64_t>(name, doc),
                            config_key<double>(name, doc),
                            config_key<std::string>(name, doc),
                            config_key<Array<std::string>>(name, doc),
                            dict_key(name, doc)};
  std::vector<std::string> kinds;
  for (const ConfigKey& key : keys) {
    kinds.push_back(key.kind);
    if (key.kind != kind) continue;
    std::lock_guard lock(table().mutex);
    if (!table().keys.try_emplace(name, key).second)
      throw_user_error("the configuration '{}' is registered already; give the new one another name", name);
    return;
  }
  throw_user_error("the configuration '{}' cannot be of kind '{}'; the kinds are {}", name, kind,
                   fmt::join(kinds, ", "));
}

std::string backend_key(const std::string& backend) {
  return fmt::format("{}{}{}", kRegionCompilerPrefix, backend, kOptions);
}

std::optional<std::string> backend_of_key(std::string_view key) {
  constexpr std::string_view kPrefix = kRegionCompilerPrefix;
  const bool is_key =
      key.size() > kPrefix.size() + kOptions.size() && key.starts_with(kPrefix) && key.ends_with(kOptions);
  if (!is_key) return std::nullopt;
  return std::string(key.substr(kPrefix.size(), key.size() - kPrefix.size() - kOptions.size()));
}

void declare_backend_key(const std::string& backend) {
  declare_config_key(dict_key(backend_key(backend), fmt::format("the options of the backend {}, by name", backend)));
}

std::vector<ConfigKey> config_keys() {
  std::lock_guard lock(table().mutex);
  std::vector<ConfigKey> keys;
  for (const auto& [name, key] : table().keys) keys.push_back(key);
  return keys;
}

namespace {

const ConfigKey& get_config_key(std::string_view name) {
  const ConfigKey* key = find_config_key(name);
  if (key != nullptr) return *key;
  std::vector<std::string> names;
  for (const ConfigKey& known : config_keys()) names.push_back(known.name);
  throw_user_error("there is no configuration '{}'; {}", name, near_or_all(name, names, "there are:"));
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Parses NAME=A,B;NAME=A; returns nothing where a row has no name.
std::optional<Map<std::string, Array<std::string>>> parse_lists(std::string_view text) {
  Map<std::string, Array<std::string>> lists;
  for (const std::string& row : split(text, ';')) {
    const size_t equals = row.find('=');
    if (equals == std::string::npos || equals == 0) return std::nullopt;
    lists.set(row.substr(0, equals), Array<std::string>(split(std::string_view(row).substr(equals + 1), ',')));
  }
  return lists;
}

}  // namespace

Value parse_config_value(std::string_view name, std::string_view text) {
  const ConfigKey& key = get_config_key(name);
  std::vector<Value> readings;
  for (const bool truth : {true, false}) {
    if (key.kind != "bool") break;  // an int also accepts a bool, but a text "true" does not mean an int
    if (text == (truth ? "true" : "false") || text == (truth ? "True" : "False")) readings.emplace_back(truth);
  }
  if (const auto number = parse_number<int64_t>(text)) readings.emplace_back(*number);
  if (const auto number = parse_number<double>(text)) readings.emplace_back(*number);
  if (const auto lists = parse_lists(text)) readings.emplace_back(*lists);
  readings.emplace_back(std::string(text));
  readings.emplace_back(Array<std::string>(split(text, ',')));
  for (const Value& value : readings) {
    if (key.accepts(value.raw())) return value;
  }
  throw_user_error("configuration '{}': '{}' is not of the kind {} ({})", name, text, key.kind, key.doc);
}

void check_opt_level(int64_t level) {
  if (level < 0 || level > kMaxOptLevel)
    throw_user_error("opt_level is {}; it goes from 0 (each op by itself) to {}", level, kMaxOptLevel);
}

void check_config(const Map<std::string, Value>& config) {
  for (const auto& [name, value] : config) {
    const ConfigKey& key = get_config_key(name);
    if (!key.accepts(value.raw()))
      throw_user_error("configuration '{}': {}", name, kind_mismatch(key.kind, value.raw()));
    if (key.check != nullptr) key.check(value);
  }
}

}  // namespace headrace::pass
