#include "object/repr.h"

#include "object/array.h"
#include "object/dtype_text.h"
#include "object/map.h"
#include "object/string.h"

namespace headrace {

namespace {

std::string quoted(std::string_view text, size_t limit) {
  std::string result = "\"";
  for (const char c : text.substr(0, limit)) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      result += c;
    }
  }
  // Not in the middle of a UTF-8 character.
  while (text.size() > limit && result.size() > 1 && (static_cast<unsigned char>(result.back()) & 0x80) != 0)
    result.pop_back();
  return result + (text.size() > limit ? "...\"" : "\"");
}

class Writer {
 public:
  explicit Writer(ReprLimits limits) : limits_(limits) {}

  // Writes a value; the depth limit bounds the recursion.
  void write(const Value& value, int depth) {
    if (full()) {
      if (!text_.ends_with("...")) text_ += "...";
      return;
    }
    const Object* object = value.object();
    if (object == nullptr || is_string(value.raw()) || is_bytes(value.raw())) {
      text_ += plain(value.raw());
    } else if (object->type_info().content.text != nullptr) {
      text_ += object->type_info().content.text(*object);
    } else if (depth <= 0) {
      text_ += object->is_instance<ArrayObj>() ? "[...]" : fmt::format("{}(...)", object->key());
    } else if (const auto* array = value.as_node<ArrayObj>(); array != nullptr) {
      write_array(*array, depth);
    } else if (const auto* map = value.as_node<MapObj>(); map != nullptr) {
      write_map(*map, depth);
    } else {
      write_node(*object, depth);
    }
  }
  std::string take() { return std::move(text_); }

 private:
  bool full() const { return text_.size() >= static_cast<size_t>(std::max(limits_.size, 0)); }

  std::string plain(const RawValue& raw) const {
    const auto room = static_cast<size_t>(std::max(limits_.size, 16));
    if (is_string(raw)) return quoted(string_of(raw), room);
    if (is_bytes(raw)) return fmt::format("Bytes({} bytes)", string_of(raw).size());
    switch (raw.type_index) {
      case type_index::kNone:
        return "None";
      case type_index::kInt:
        return fmt::format("{}", raw.v.v_int);
      case type_index::kBool:
        return raw.v.v_int != 0 ? "True" : "False";
      case type_index::kFloat:
        return fmt::format("{}", raw.v.v_float);
      case type_index::kDataType:
        return dtype_text(raw.v.v_dtype.code, raw.v.v_dtype.bits, raw.v.v_dtype.lanes);
      case type_index::kDevice:
        return fmt::format("device(type {}, id {})", raw.v.v_device.type, raw.v.v_device.id);
      default:
        return fmt::format("<{}>", kind_name(raw));
    }
  }

  void write_array(const ArrayObj& array, int depth) {
    text_ += '[';
    for (size_t i = 0; i < array.items.size() && separate(i); ++i) write(array.items[i], depth - 1);
    text_ += ']';
  }

  void write_map(const MapObj& map, int depth) {
    text_ += '{';
    for (size_t i = 0; i < map.items.size() && separate(i); ++i) {
      write(map.items[i].first, depth - 1);
      text_ += ": ";
      write(map.items[i].second, depth - 1);
    }
    text_ += '}';
  }

  void write_node(const Object& node, int depth) {
    text_ += fmt::format("{}(", node.key());
    bool first = true;
    for (const FieldInfo& field : node.type_info().fields) {
      if (field.options.ignore || field.options.transient) continue;
      const Value value = field.get(&node);
      if (value.is_none() && field.options.optional) continue;
      text_ += fmt::format("{}{}=", first ? "" : ", ", field.name);
      first = false;
      write(value, depth - 1);
      if (full()) break;
    }
    text_ += ')';
  }

  // Writes the separator before item `i`; returns false when no more items are wanted.
  bool separate(size_t i) {
    if (i > 0) text_ += ", ";
    if (i < static_cast<size_t>(limits_.items) && !full()) return true;
    text_ += "...";
    return false;
  }

  ReprLimits limits_;
  std::string text_;
};

}  // namespace

std::string repr(const Value& value, ReprLimits limits) {
  Writer writer(limits);
  writer.write(value, std::min(limits.depth, 64));
  return writer.take();
}

}  // namespace headrace
