#include "ir/target_json.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/json_fault.h"

namespace headrace {

namespace {

using Json = nlohmann::ordered_json;
using Event = nlohmann::detail::parse_event_t;

// target > host > list
constexpr int kMaxNested = 3;

Value value_of(const std::string& key, const Json& json) {
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer() && !(json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX))
    return Value(json.get<int64_t>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    Array<Value> items;
    for (const Json& item : json) items.push_back(value_of(key, item));
    return Value(items);
  }
  if (!json.is_object())
    throw_user_error(
        "the target's \"{}\" is {}; values are texts, integers, true, false and lists of texts, and what is not "
        "given is left out",
        key, json.dump());
  Map<std::string, Value> map;
  for (const auto& [name, item] : json.items()) map.set(name, value_of(name, item));
  return Value(map);
}

// Refuses input that the JSON parser accepts silently.
class Watch {
 public:
  bool operator()(int depth, Event event, const Json& parsed) {
    if (depth > kMaxNested) throw_user_error("the target's JSON nests deeper than a target with a host");
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end) keys_.pop_back();
    if (event == Event::key && !keys_.back().insert(parsed.get<std::string>()).second)
      throw_user_error("the target's JSON has {} twice", parsed.dump());
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

}  // namespace

Map<std::string, Value> parse_target_json(std::string_view text) {
  Json json;
  try {
    Watch watch;
    json = Json::parse(text, [&](int depth, Event event, const Json& parsed) { return watch(depth, event, parsed); });
  } catch (const Json::exception& error) {
    throw_user_error("the target begins with '{{' and is not JSON: {}", json_fault(error));
  }
  const Value value = value_of("", json);
  if (!value.is<Map<std::string, Value>>()) throw_user_error("the target's JSON is not an object");
  return value.as<Map<std::string, Value>>();
}

}  // namespace headrace
