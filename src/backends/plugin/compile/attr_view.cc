#include "backends/plugin/compile/attr_view.h"

#include "object/reflect.h"
#include "object/string.h"

namespace headrace::backends::plugin {

namespace {

// A value as a plugin sees it: one integer, real or text, a list of them, or something else.
struct Plain {
  enum class Kind : uint8_t { kNone, kInteger, kReal, kText, kList, kOther } kind = Kind::kOther;
  int64_t integer = 0;
  double real = 0;
  std::string text = {};
  std::vector<Value> items = {};
};

std::vector<Value> items_of(const Value& value) {
  std::vector<Value> items;
  if (value.type_index() == type_index::kShape) {
    for (const int64_t dim : value.as<Shape>()) items.emplace_back(dim);
  } else {
    for (const Value& item : value.as<Array<Value>>()) items.push_back(item);
  }
  return items;
}

Plain plain_object(const Value& value) {
  using enum Plain::Kind;
  if (value.type_index() == type_index::kShape || value.as_node<ArrayObj>() != nullptr)
    return {.kind = kList, .items = items_of(value)};
  if (const auto* imm = value.as_node<IntImmNode>()) return {.kind = kInteger, .integer = imm->value};
  return {.kind = kOther, .text = kind_name(value.raw())};
}

Plain plain(const Value& value) {
  using enum Plain::Kind;
  const RawValue& raw = value.raw();
  switch (raw.type_index) {
    case type_index::kNone:
      return {.kind = kNone};
    case type_index::kBool:
    case type_index::kInt:
      return {.kind = kInteger, .integer = raw.v.v_int};
    case type_index::kFloat:
      return {.kind = kReal, .real = raw.v.v_float};
    case type_index::kDataType:
      return {.kind = kText, .text = value.as<DataType>().to_string()};
    default:
      break;
  }
  if (is_string(raw)) return {.kind = kText, .text = std::string(string_of(raw))};
  return value.is_object() ? plain_object(value) : Plain{.kind = kOther, .text = kind_name(raw)};
}

}  // namespace

AttrList::AttrList(const Attrs& attrs) {
  if (!attrs) return;
  for (const FieldInfo& field : attrs->type_info().fields) {
    if (!field.options.transient) add(field.name, field.get(attrs.get()));
  }
}

AttrList::AttrList(const Map<std::string, Value>& options) {
  for (const auto& [key, value] : options) add(key, value);
}

hr_attr AttrList::find(std::string_view name) const {
  for (const hr_attr& view : views_) {
    if (view.name == name) return view;
  }
  return {};
}

void AttrList::add(const std::string& name, const Value& value) {
  texts_.push_back(name);
  hr_attr view{.name = texts_.back().c_str(),
               .kind = HR_ATTR_NONE,
               .count = 0,
               .integers = nullptr,
               .reals = nullptr,
               .texts = nullptr};
  const Plain one = plain(value);
  switch (one.kind) {
    case Plain::Kind::kNone:
      break;
    case Plain::Kind::kInteger:
      view.kind = HR_ATTR_INTEGER;
      view.integers = integers_.emplace_back(1, one.integer).data();
      view.count = 1;
      break;
    case Plain::Kind::kReal:
      view.kind = HR_ATTR_REAL;
      view.reals = reals_.emplace_back(1, one.real).data();
      view.count = 1;
      break;
    case Plain::Kind::kText:
    case Plain::Kind::kOther:
      view.kind = one.kind == Plain::Kind::kText ? HR_ATTR_TEXT : HR_ATTR_OTHER;
      set_texts(view, {one.text});
      break;
    case Plain::Kind::kList:
      add_list(view, one.items);
  }
  views_.push_back(view);
}

// A list is of integers, else of reals, else of texts; an empty one counts as integers.
void AttrList::add_list(hr_attr& view, const std::vector<Value>& items) {
  using enum Plain::Kind;
  std::vector<int64_t> integers;
  std::vector<double> reals;
  std::vector<std::string> texts;
  for (const Value& item : items) {
    const Plain one = plain(item);
    if (one.kind == kInteger) integers.push_back(one.integer);
    if (one.kind == kInteger || one.kind == kReal)
      reals.push_back(one.kind == kReal ? one.real : static_cast<double>(one.integer));
    if (one.kind == kText) texts.push_back(one.text);
  }
  view.count = items.size();
  if (integers.size() == items.size()) {
    view.kind = HR_ATTR_INTEGERS;
    view.integers = integers_.emplace_back(std::move(integers)).data();
  } else if (reals.size() == items.size()) {
    view.kind = HR_ATTR_REALS;
    view.reals = reals_.emplace_back(std::move(reals)).data();
  } else if (texts.size() == items.size()) {
    view.kind = HR_ATTR_TEXTS;
    set_texts(view, std::move(texts));
  } else {
    view.kind = HR_ATTR_OTHER;
    set_texts(view, {"a list of several kinds of values"});
  }
}

void AttrList::set_texts(hr_attr& view, std::vector<std::string> texts) {
  std::vector<const char*>& list = text_lists_.emplace_back();
  for (std::string& text : texts) list.push_back(texts_.emplace_back(std::move(text)).c_str());
  view.texts = list.data();
  view.count = list.size();
}

}  // namespace headrace::backends::plugin
