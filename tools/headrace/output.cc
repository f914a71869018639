#include "tools/headrace/output.h"

#include <nlohmann/json.hpp>

#include "base/json_fault.h"
#include "object/array.h"
#include "object/shape_tuple.h"
#include "partition/json_text.h"
#include "tools/headrace/shown_text.h"

namespace headrace::tools {

namespace {

using Json = nlohmann::ordered_json;

// Reports are a few levels deep: verbs make them.
Json json_of(const Value& value) {
  switch (value.type_index()) {
    case type_index::kBool:
      return value.as<bool>();
    case type_index::kInt:
      return value.as<int64_t>();
    case type_index::kFloat:
      return value.as<double>();
    default:
      break;
  }
  if (value.is<std::string>()) return value.as<std::string>();
  if (value.is<Shape>()) return value.as<Shape>();
  if (const auto* array = value.as_node<ArrayObj>()) {
    Json list = Json::array();
    for (const Value& item : array->items) list.push_back(json_of(item));
    return list;
  }
  if (const auto* map = value.as_node<MapObj>()) {
    Json object = Json::object();
    for (const auto& [key, item] : map->items) object[key.as<std::string>()] = json_of(item);
    return object;
  }
  return nullptr;
}

Value value_of(const Json& json, const std::string& name, int depth) {
  constexpr int kMaxDepth = 64;
  if (depth > kMaxDepth) throw_user_error("'{}': its JSON is nested deeper than {} levels", name, kMaxDepth);
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number_integer()) return Value(json.get<int64_t>());
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_string()) return Value(json.get<std::string>());
  if (json.is_array()) {
    Array<Value> list;
    for (const Json& item : json) list.push_back(value_of(item, name, depth + 1));
    return Value(list);
  }
  if (!json.is_object()) return {};
  Report object;
  for (const auto& [key, item] : json.items()) object.set(key, value_of(item, name, depth + 1));
  return Value(object);
}

// File names need not be UTF-8: what is none is shown as such.
std::string text_of(const Report& report, int indent) {
  return json_of(Value(report)).dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const Report& report) { return text_of(report, 2) + "\n"; }

std::string to_compact_json(const Report& report) { return text_of(report, -1); }

Value from_json(std::string_view text, const std::string& name) {
  try {
    return value_of(Json::parse(text), name, 0);
  } catch (const Json::exception& fault) {
    static_cast<void>(partition::parse_json_text({.text = std::string(text), .name = name}));  // throws with the place
    throw_user_error("'{}' is not valid JSON: {}", name, json_fault(fault));
  }
}

std::string to_table(std::vector<std::vector<std::string>> rows) {
  for (auto& row : rows) {
    for (std::string& cell : row) cell = shown(cell);
  }
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string show_bytes(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{} bytes", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  if (bytes < 1'000'000'000) return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
  return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

std::string show_seconds(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace headrace::tools
