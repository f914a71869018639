#include "pass/config.h"

#include <map>
#include <mutex>

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

}  // namespace

void declare_config_key(ConfigKey key) {
  std::lock_guard lock(table().mutex);
  table().keys.try_emplace(key.name, key);
}

const ConfigKey* find_config_key(std::string_view name) {
  std::lock_guard lock(table().mutex);
  const auto found = table().keys.find(name);
  return found == table().keys.end() ? nullptr : &found->second;
}

std::vector<ConfigKey> config_keys() {
  std::lock_guard lock(table().mutex);
  std::vector<ConfigKey> keys;
  for (const auto& [name, key] : table().keys) keys.push_back(key);
  return keys;
}

void check_config(const Map<std::string, Value>& config) {
  for (const auto& [name, value] : config) {
    const ConfigKey* key = find_config_key(name);
    if (key == nullptr) {
      std::vector<std::string> names;
      for (const ConfigKey& known : config_keys()) names.push_back(known.name);
      throw_user_error("there is no configuration '{}'; there are: {}", name, fmt::join(names, ", "));
    }
    if (!key->accepts(value.raw()))
      throw_user_error("configuration '{}': {}", name, kind_mismatch(key->kind, value.raw()));
  }
}

}  // namespace headrace::pass
