#include "tools/headrace/output.h"

#include <nlohmann/json.hpp>

#include "object/array.h"
#include "object/shape_tuple.h"
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

}  // namespace

std::string to_json(const Report& report) {
  // File names need not be UTF-8: what is none is shown as such.
  return json_of(Value(report)).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
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
