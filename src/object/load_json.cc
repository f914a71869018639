#include <limits>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "base/json_fault.h"
#include "object/array.h"
#include "object/base64.h"
#include "object/json.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "object/string.h"

namespace headrace {

namespace {

using Json = nlohmann::ordered_json;

// root > nodes > node > parts > pair > value > list
constexpr int kMaxDepth = 8;

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

int64_t to_int(const Json& json) {
  const bool too_large =
      json.is_number_unsigned() && json.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!json.is_number_integer() || too_large) throw_user_error("expected an integer of 64 bits, got {}", shown(json));
  return json.get<int64_t>();
}

std::vector<int64_t> to_ints(const Json& json, size_t count = 0) {
  if (!json.is_array() || (count != 0 && json.size() != count))
    throw_user_error("expected a list of {}integers, got {}", count != 0 ? fmt::format("{} ", count) : "", shown(json));
  std::vector<int64_t> values;
  for (const Json& item : json) values.push_back(to_int(item));
  return values;
}

template <typename T>
T in_range(int64_t value) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max())
    throw_user_error("{} is out of range", value);
  return static_cast<T>(value);
}

const std::string& to_string_of(const Json& json) {
  if (!json.is_string()) throw_user_error("expected a string, got {}", shown(json));
  return json.get_ref<const std::string&>();
}

std::string from_base64(const Json& json) {
  const std::vector<std::byte> bytes = decode_base64(to_string_of(json));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Value to_float(const Json& json) {
  const std::string& text = to_string_of(json);
  if (text == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
  if (text == "inf") return Value(std::numeric_limits<double>::infinity());
  if (text == "-inf") return Value(-std::numeric_limits<double>::infinity());
  throw_user_error("expected nan, inf or -inf, got {}", shown(json));
}

Value to_dtype(const Json& json) {
  const auto parts = to_ints(json, 3);
  RawValue raw;
  raw.type_index = type_index::kDataType;
  raw.v.v_dtype = {in_range<uint8_t>(parts[0]), in_range<uint8_t>(parts[1]), in_range<uint16_t>(parts[2])};
  return Value::adopt(raw);
}

Value to_device(const Json& json) {
  const auto parts = to_ints(json, 2);
  RawValue raw;
  raw.type_index = type_index::kDevice;
  raw.v.v_device = {in_range<int32_t>(parts[0]), in_range<int32_t>(parts[1])};
  return Value::adopt(raw);
}

// Reads {"shape": [2, 3]} and its like; {} is an empty Map.
Value to_special(const Json& json) {
  if (json.empty()) return Value(make_object<MapObj>());
  const std::string kind = json.size() == 1 ? json.begin().key() : "";
  const Json& content = json.begin().value();
  if (kind == "float") return to_float(content);
  if (kind == "bytes") return Value(Bytes{from_base64(content)});
  if (kind == "text") return Value(from_base64(content));
  if (kind == "shape") return Value(Shape(to_ints(content)));
  if (kind == "dtype") return to_dtype(content);
  if (kind == "device") return to_device(content);
  throw_user_error("expected a value, got {}", shown(json));
}

using Upgrades = std::map<std::string, void (*)(NamedValues&), std::less<>>;

struct UpgradeTable {
  std::mutex mutex;
  Upgrades upgrades;
};

UpgradeTable& upgrade_table() {
  static UpgradeTable& table = *new UpgradeTable;
  return table;
}

Upgrades known_upgrades() {
  std::lock_guard lock(upgrade_table().mutex);
  return upgrade_table().upgrades;
}

class Loader {
 public:
  Value load(const Json& document) {
    check_head(document);
    const Json& list = document.at("nodes");
    if (!list.is_array()) throw_user_error("\"nodes\" is not a list");
    nodes_.reserve(list.size());
    for (const Json& node : list) {
      try {
        nodes_.push_back(to_node(node));
      } catch (const UserError& error) {
        throw_user_error("node {}: {}", nodes_.size(), error.message());
      }
    }
    return to_value(document.at("root"));
  }

 private:
  static void check_head(const Json& document) {
    if (!document.is_object() || !document.contains("headrace") || document.at("headrace") != "object graph")
      throw_user_error("it does not say \"headrace\": \"object graph\"");
    for (const char* key : {"version", "root", "nodes"}) {
      if (!document.contains(key)) throw_user_error("it has no \"{}\"", key);
    }
    const int64_t version = to_int(document.at("version"));
    if (version != 1) throw_user_error("it has version {}; this program reads versions 1 to 1", version);
    if (document.size() != 4)
      throw_user_error("it has keys beside headrace, version, root and nodes; no others are known");
  }

  Value to_value(const Json& json) const {
    if (json.is_null()) return {};
    if (json.is_boolean()) return Value(json.get<bool>());
    if (json.is_number_integer()) return Value(to_int(json));
    if (json.is_number_float()) return Value(json.get<double>());
    if (json.is_string()) return Value(json.get<std::string>());
    if (json.is_object()) return to_special(json);
    if (json.empty()) return Value(make_object<ArrayObj>());
    const int64_t index = to_ints(json, 1)[0];
    if (index < 0 || index >= static_cast<int64_t>(nodes_.size()))
      throw_user_error("reference {} is to none of the {} nodes before it", shown(json), nodes_.size());
    return nodes_[static_cast<size_t>(index)];
  }

  Value to_node(const Json& json) const {
    if (!json.is_array() || json.size() != 2) throw_user_error("expected [type, parts], got {}", shown(json));
    const std::string& key = to_string_of(json[0]);
    if (key == ArrayObj::type_key) return to_array(json[1]);
    if (key == MapObj::type_key) return to_map(json[1]);
    if (!json[1].is_object())
      throw_user_error("the fields of {} must be an object, {{...}}, got {}", key, shown(json[1]));
    NamedValues fields;
    for (const auto& [name, value] : json[1].items()) fields.emplace_back(name, to_value(value));
    if (const auto found = upgrades_.find(key); found != upgrades_.end()) found->second(fields);
    const TypeInfo* type = find_type(key);
    if (type != nullptr && type->content.load != nullptr) return Value(type->content.load(fields));
    return Value(make_node(key, fields));
  }

  Value to_array(const Json& json) const {
    if (!json.is_array()) throw_user_error("the items of an Array must be a list, got {}", shown(json));
    const auto array = make_object<ArrayObj>();
    array->items.reserve(json.size());
    for (const Json& item : json) array->items.push_back(to_value(item));
    return Value(array);
  }

  Value to_map(const Json& json) const {
    if (!json.is_array()) throw_user_error("the items of a Map must be a list, got {}", shown(json));
    const auto map = make_object<MapObj>();
    for (const Json& item : json) {
      if (!item.is_array() || item.size() != 2) throw_user_error("expected [key, value], got {}", shown(item));
      Value key = to_value(item[0]);
      if (map->find(key.raw()) != nullptr) throw_user_error("the Map has the key {} twice", shown(item[0]));
      map->set(std::move(key), to_value(item[1]));
    }
    return Value(map);
  }

  const Upgrades upgrades_ = known_upgrades();
  std::vector<Value> nodes_;
};

}  // namespace

void set_json_upgrade(std::string key, void (*upgrade)(NamedValues& fields)) {
  std::lock_guard lock(upgrade_table().mutex);
  upgrade_table().upgrades[std::move(key)] = upgrade;
}

Value load_json(std::string_view text, const std::string& source_name) {
  try {
    check_json_depth(text, kMaxDepth);
    return Loader().load(Json::parse(text));
  } catch (const Json::exception& error) {
    throw_user_error("{}: {}", source_name, json_fault(error));
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}: {}", source_name, error.message()), error.where());
  }
}

}  // namespace headrace
