#include "backends/plugin/compile/attr_view.h"

#include <algorithm>
#include <charconv>
#include <cmath>

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
  for (const auto& [key, value] : options) {
    add(key, value);
    add_forms(views_.back(), value.type_index() == type_index::kBool);
  }
}

namespace {

// Reads a whole text as a number; nothing for other texts, also for "inf" and "nan".
template <typename T>
std::optional<T> number_of(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(static_cast<double>(number)))
    return {};
  return number;
}

std::optional<int64_t> integer_of(std::string_view text) {
  if (text == "true" || text == "false") return text == "true" ? 1 : 0;
  return number_of<int64_t>(text);
}

}  // namespace

void AttrList::add_forms(hr_attr& option, bool is_boolean) {
  if (option.kind == HR_ATTR_TEXT) {
    const std::string_view text = option.texts[0];
    if (const auto integer = integer_of(text)) option.integers = integers_.emplace_back(1, *integer).data();
    if (const auto real = number_of<double>(text)) option.reals = reals_.emplace_back(1, *real).data();
  } else if (option.kind == HR_ATTR_INTEGER) {
    const int64_t integer = option.integers[0];
    option.reals = reals_.emplace_back(1, static_cast<double>(integer)).data();
    set_texts(option, {!is_boolean ? fmt::format("{}", integer) : integer != 0 ? "true" : "false"});
  } else if (option.kind == HR_ATTR_REAL) {
    set_texts(option, {fmt::format("{}", option.reals[0])});
  }
}

hr_attr AttrList::find(std::string_view name) const {
  for (const hr_attr& view : views_) {
    if (view.name == name) return view;
  }
  return {};
}

namespace {

bool is_plain_list(const hr_attr& view) {
  return view.kind == HR_ATTR_INTEGERS || view.kind == HR_ATTR_REALS || view.kind == HR_ATTR_TEXTS;
}

// Returns the view of one item of a plain list.
hr_attr item_of(const hr_attr& list, uint64_t index) {
  hr_attr item{
      .name = list.name, .kind = HR_ATTR_TEXT, .count = 1, .integers = nullptr, .reals = nullptr, .texts = nullptr};
  if (list.kind == HR_ATTR_INTEGERS) {
    item.kind = HR_ATTR_INTEGER;
    item.integers = list.integers + index;
  } else if (list.kind == HR_ATTR_REALS) {
    item.kind = HR_ATTR_REAL;
    item.reals = list.reals + index;
  } else {
    item.texts = list.texts + index;
  }
  return item;
}

}  // namespace

std::optional<AttrList::Tree> AttrList::find_tree(std::string_view name, std::span<const uint64_t> path) const {
  const auto found =
      std::find_if(trees_.begin(), trees_.end(), [&](const Tree& tree) { return tree.view.name == name; });
  if (found == trees_.end()) return std::nullopt;
  const Tree* at = &*found;
  for (size_t i = 0; i < path.size(); ++i) {
    const bool is_plain = is_plain_list(at->view);
    if (path[i] >= (is_plain ? at->view.count : at->items.size())) return std::nullopt;
    if (!is_plain) {
      at = &at->items[path[i]];
    } else if (i + 1 == path.size()) {
      return Tree{.view = item_of(at->view, path[i])};
    } else {
      return std::nullopt;
    }
  }
  return *at;
}

uint64_t AttrList::num_items(std::string_view name, std::span<const uint64_t> path) const {
  const std::optional<Tree> tree = find_tree(name, path);
  if (!tree) return 0;
  return is_plain_list(tree->view) ? tree->view.count : tree->items.size();
}

hr_attr AttrList::item(std::string_view name, std::span<const uint64_t> path) const {
  const std::optional<Tree> tree = find_tree(name, path);
  return tree ? tree->view : hr_attr{};
}

void AttrList::add(const std::string& name, const Value& value) {
  texts_.push_back(name);
  trees_.push_back(make_tree(texts_.back().c_str(), value));
  views_.push_back(trees_.back().view);
}

// Lists nest as deep as the program's text says.
AttrList::Tree AttrList::make_tree(const char* name, const Value& value) {
  Tree tree{
      .view = {
          .name = name, .kind = HR_ATTR_NONE, .count = 0, .integers = nullptr, .reals = nullptr, .texts = nullptr}};
  hr_attr& view = tree.view;
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
      add_list(tree, one.items);
  }
  return tree;
}

// A list is of integers, else of reals, else of texts; an empty one counts as integers.
void AttrList::add_list(Tree& tree, const std::vector<Value>& items) {
  using enum Plain::Kind;
  hr_attr& view = tree.view;
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
    set_texts(view, {"a list of several kinds of values, or of lists"});
    for (const Value& item : items) tree.items.push_back(make_tree(view.name, item));
  }
}

void AttrList::set_texts(hr_attr& view, std::vector<std::string> texts) {
  std::vector<const char*>& list = text_lists_.emplace_back();
  for (std::string& text : texts) list.push_back(texts_.emplace_back(std::move(text)).c_str());
  view.texts = list.data();
  view.count = list.size();
}

}  // namespace headrace::backends::plugin
