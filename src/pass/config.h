// The keys of a context's configuration: each is declared once, with the kind of its value.
#pragma once

#include "object/array.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace::pass {

struct ConfigKey {
  std::string name;  // "relay.FuseOps.max_depth": of pass FuseOps
  std::string kind;  // "int"
  std::string doc;
  bool (*accepts)(const RawValue& value);
  std::string default_text = {};                // the value without it, as text; empty when there is no single value
  void (*check)(const Value& value) = nullptr;  // throws a UserError for a value that is invalid in other ways
};

// Makes a key with values of type T.
template <typename T>
ConfigKey config_key(std::string name, std::string doc, std::string default_text = "",
                     void (*check)(const Value& value) = nullptr) {
  return {std::move(name),          ValueTraits<T>::name(),  std::move(doc),
          &ValueTraits<T>::matches, std::move(default_text), check};
}

// Makes a key known; a key that is known already stays as it is.
void declare_config_key(ConfigKey key);

// Makes a key for users' passes and backends, whose values are of a named kind: "bool", "int", "float", "str",
// "Array[str]" or "dict" (by str). UserError for another kind, a name that is not a word and a key that is declared.
void register_config_key(const std::string& name, const std::string& kind, const std::string& doc);

// Returns the key of a backend's options, relay.ext.NAME.options, and declares it: its value is a dict by str.
std::string backend_key(const std::string& backend);
void declare_backend_key(const std::string& backend);
// Returns NAME of a key relay.ext.NAME.options; nothing for any other key.
std::optional<std::string> backend_of_key(std::string_view key);

// Returns the key of that name; null when there is none. A backend that is only a function relay.ext.NAME of this
// process has its key, too.
const ConfigKey* find_config_key(std::string_view name);
std::vector<ConfigKey> config_keys();

// Parses the value of a key from a command line, in the kind that the key declares: true, 3, 0.5, or a text; a list of
// texts as A,B; a map to lists as NAME=A,B;NAME=A. UserError for an unknown key, as check_config, and for a text of
// another kind.
Value parse_config_value(std::string_view key, std::string_view text);

// The level of a context: which passes of a sequence run. 0 makes each op a kernel by itself.
inline constexpr int64_t kMaxOptLevel = 4;
// Throws a UserError for a level outside of [0, kMaxOptLevel].
void check_opt_level(int64_t level);

// Checks a configuration. UserError that names an unknown key and lists the known ones, or that says what is wrong with
// a value.
void check_config(const Map<std::string, Value>& config);

}  // namespace headrace::pass
