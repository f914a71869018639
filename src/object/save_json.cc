#include <cmath>
#include <optional>
#include <unordered_map>

#include "object/array.h"
#include "object/base64.h"
#include "object/json.h"
#include "object/map.h"
#include "object/shape_tuple.h"
#include "base/utf8.h"
#include "object/string.h"

namespace headrace {

namespace {

std::string base64_of(std::string_view bytes) { return encode_base64(std::as_bytes(std::span(bytes))); }

std::string string_json(std::string_view text) {
  std::string json = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i, 4));
    if (length == 0) return fmt::format("{{\"text\": \"{}\"}}", base64_of(text));
    const char c = text[i];
    if (c == '"' || c == '\\') {
      json += fmt::format("\\{}", c);
    } else if (static_cast<uint8_t>(c) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      json += text.substr(i, length);
    }
    i += length;
  }
  return json + "\"";
}

// Writes a number that reads back as the same double, and never as an integer.
std::string float_json(double value) {
  if (std::isnan(value)) return "{\"float\": \"nan\"}";
  if (std::isinf(value)) return fmt::format("{{\"float\": \"{}inf\"}}", value < 0 ? "-" : "");
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Returns the JSON of a value that is written in place; nothing for a node.
std::optional<std::string> inline_json(const Value& value) {
  const RawValue& raw = value.raw();
  if (is_string(raw)) return string_json(string_of(raw));
  if (is_bytes(raw)) return fmt::format("{{\"bytes\": \"{}\"}}", base64_of(string_of(raw)));
  switch (raw.type_index) {
    case type_index::kNone:
      return "null";
    case type_index::kBool:
      return raw.v.v_int != 0 ? "true" : "false";
    case type_index::kInt:
      return fmt::format("{}", raw.v.v_int);
    case type_index::kFloat:
      return float_json(raw.v.v_float);
    case type_index::kDataType:
      return fmt::format("{{\"dtype\": [{}, {}, {}]}}", raw.v.v_dtype.code, raw.v.v_dtype.bits, raw.v.v_dtype.lanes);
    case type_index::kDevice:
      return fmt::format("{{\"device\": [{}, {}]}}", raw.v.v_device.type, raw.v.v_device.id);
    default:
      break;
  }
  if (const auto* shape = value.as_node<ShapeObj>())
    return fmt::format("{{\"shape\": [{}]}}", fmt::join(shape->storage, ", "));
  if (const auto* array = value.as_node<ArrayObj>(); array != nullptr && array->items.empty()) return "[]";
  if (const auto* map = value.as_node<MapObj>(); map != nullptr && map->items.empty()) return "{}";
  if (!value.is_object()) throw_user_error("a {} cannot be saved", kind_name(raw));
  return std::nullopt;
}

// Returns a node's parts with their names; an Array has none, a Map's keys and values alternate.
NamedValues parts_of(const Object& node) {
  NamedValues parts;
  if (node.is_instance<ArrayObj>()) {
    for (const Value& item : static_cast<const ArrayObj&>(node).items) parts.emplace_back("", item);
  } else if (node.is_instance<MapObj>()) {
    for (const auto& [key, value] : static_cast<const MapObj&>(node).items) {
      parts.emplace_back("", key);
      parts.emplace_back("", value);
    }
  } else if (const TypeInfo& type = node.type_info(); type.content.save != nullptr) {
    parts = type.content.save(node);
  } else {
    if (type.make_empty == nullptr) throw_user_error("an object of type {} cannot be saved as JSON", type.key);
    for (const FieldInfo& field : type.fields) {
      if (field.options.transient) continue;
      Value value = field.get(&node);
      if (!(value.is_none() && field.options.optional)) parts.emplace_back(field.name, std::move(value));
    }
  }
  return parts;
}

class Saver {
 public:
  Saver() = default;
  Saver(std::string_view key, std::vector<Value>& apart) : key_(key), apart_(&apart) {}

  std::string save(const Value& root) {
    push(root);
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.next < top.parts.size()) {
        push(Value(top.parts[top.next++].second));  // may move the stack
        continue;
      }
      finish(top);
      stack_.pop_back();
    }
    return fmt::format("{{\"headrace\": \"object graph\", \"version\": 1, \"root\": {}, \"nodes\": [{}{}]}}\n",
                       reference(root), nodes_, index_.empty() ? "" : "\n");
  }

 private:
  struct Frame {
    Value node;
    NamedValues parts;
    size_t next = 0;
  };

  void push(const Value& value) {
    if (index_.contains(value.object()) || inline_json(value)) return;
    if (apart_ != nullptr && value.object()->key() == key_) {
      apart_->push_back(value);
      stack_.push_back({value, {{"apart", Value(static_cast<int64_t>(apart_->size() - 1))}}});
    } else {
      stack_.push_back({value, parts_of(*value.object())});
    }
  }

  std::string reference(const Value& value) const {
    if (auto text = inline_json(value)) return *text;
    return fmt::format("[{}]", index_.at(value.object()));
  }

  void finish(const Frame& frame) {
    const Object& node = *frame.node.object();
    nodes_ += fmt::format("{}\n  [{}, ", index_.empty() ? "" : ",", string_json(node.key()));
    if (node.is_instance<ArrayObj>()) {
      write_list(frame.parts);
    } else if (node.is_instance<MapObj>()) {
      write_pairs(frame.parts);
    } else {
      write_fields(frame.parts);
    }
    nodes_ += "]";
    index_.emplace(frame.node.object(), index_.size());
    kept_.push_back(frame.node);
  }

  void write_list(const NamedValues& parts) {
    for (size_t i = 0; i < parts.size(); ++i) nodes_ += (i == 0 ? "[" : ", ") + reference(parts[i].second);
    nodes_ += "]";
  }

  void write_pairs(const NamedValues& parts) {
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      nodes_ +=
          fmt::format("{}[{}, {}]", i == 0 ? "[" : ", ", reference(parts[i].second), reference(parts[i + 1].second));
    }
    nodes_ += "]";
  }

  void write_fields(const NamedValues& parts) {
    nodes_ += "{";
    for (size_t i = 0; i < parts.size(); ++i) {
      nodes_ += fmt::format("{}{}: {}", i == 0 ? "" : ", ", string_json(parts[i].first), reference(parts[i].second));
    }
    nodes_ += "}";
  }

  std::string_view key_;
  std::vector<Value>* apart_ = nullptr;
  std::vector<Frame> stack_;
  std::unordered_map<const Object*, size_t> index_;
  std::vector<Value> kept_;  // a field may have made its value just now: no other object may get its address
  std::string nodes_;
};

}  // namespace

std::string save_json(const Value& root) { return Saver().save(root); }

std::string save_json_apart(const Value& root, std::string_view key, std::vector<Value>& apart) {
  return Saver(key, apart).save(root);
}

}  // namespace headrace
