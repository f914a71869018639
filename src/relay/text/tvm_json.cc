#include "relay/text/tvm_json.h"

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "base/json_fault.h"
#include "object/base64.h"
#include "relay/text/tvm_kinds.h"
#include "relay/text/tvm_tensor.h"

namespace headrace::relay {

namespace {

using TvmDocument = nlohmann::ordered_json;

// root > nodes > node > attributes
constexpr int kMaxTvmDepth = 4;
// The limits of a graph's value. Nodes that share parts grow without bound when they are printed or compared, and code
// that walks types recurses.
constexpr size_t kMaxTvmLevels = 1000, kMaxTvmParts = 1'000'000;

// Returns where item `index` of the list "nodes" begins; 0 if there is no such item.
size_t offset_of_tvm_node(std::string_view text, size_t index) {
  int depth = 0;
  bool is_list = false;
  size_t items = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      const size_t begin = i;
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      if (depth == 1 && text.substr(begin, i - begin) == "\"nodes") is_list = true;
    } else if (c == '{' || c == '[') {
      ++depth;
      if (is_list && depth == 3 && items++ == index) return i;
    } else if (c == '}' || c == ']') {
      --depth;
      is_list = is_list && depth > 1;
    }
  }
  return 0;
}

std::string json_string(const TvmDocument& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end()) return "";
  if (!found->is_string()) throw_user_error("its \"{}\" is not a string", key);
  return found->get<std::string>();
}

// Returns the characters of a node that has them in place of attributes. Those that are no plain text are base64 of
// their number and themselves.
std::string repr_of_tvm_node(const TvmDocument& node) {
  const std::string base64 = json_string(node, "repr_b64");
  if (base64.empty())
    return node.contains("global_key") ? json_string(node, "global_key") : json_string(node, "repr_str");
  const std::vector<std::byte> bytes = decode_base64(base64);
  uint64_t size = 0;
  if (bytes.size() >= sizeof(size)) std::memcpy(&size, bytes.data(), sizeof(size));
  if (bytes.size() < sizeof(size) || size != bytes.size() - sizeof(size))
    throw_user_error("its \"repr_b64\" does not begin with its size");
  return std::string(reinterpret_cast<const char*>(bytes.data()) + sizeof(size), static_cast<size_t>(size));
}

template <typename T>
T tvm_number_in(std::string_view name, const std::string& text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw_user_error("'{}' is not {}: '{}'", name, std::is_integral_v<T> ? "an integer" : "a number", text);
  return number;
}

class TvmGraph {
 public:
  explicit TvmGraph(std::string_view text) : text_(text) {
    try {
      check_json_depth(text, kMaxTvmDepth);
      document_ = TvmDocument::parse(text);
    } catch (const TvmDocument::parse_error& error) {
      const std::string_view fault = json_fault(error);
      const size_t colon = fault.find(": ");  // behind the line and column, which count from the beginning of `text`
      fail_at(error.byte == 0 ? 0 : error.byte - 1, colon == fault.npos ? fault : fault.substr(colon + 2));
    } catch (const TvmDocument::exception& error) {
      fail_at(0, json_fault(error));
    } catch (const UserError& error) {
      fail_at(0, error.message());
    }
    check_document();
  }

  // Makes the root. The nodes that a node needs are made first, one after another.
  Value root() {
    std::vector<size_t> stack{root_};
    while (!stack.empty()) {
      const size_t place = stack.back();
      if (place < nodes_->size() && made_[place].is_made) {
        stack.pop_back();
        continue;
      }
      at_node(place, [&] {
        const std::vector<size_t> parts = parts_of(place);
        const size_t before = stack.size();
        std::copy_if(parts.begin(), parts.end(), std::back_inserter(stack),
                     [&](size_t part) { return !is_made(part); });
        if (stack.size() == before) return finish(place, parts);
        if (std::exchange(made_[place].is_begun, true)) throw_user_error("it is part of itself");
      });
    }
    return made_[root_].value;
  }

 private:
  struct Made {
    Value value;
    size_t levels = 0, parts = 0;  // parts are counted once for each way to them
    bool is_begun = false, is_made = false;
  };

  [[noreturn]] void fail_at(size_t offset, std::string_view why) const {
    throw TvmJsonError(fmt::format("it is damaged: {}", why), std::min(offset, text_.size()));
  }

  void check_document() {
    const auto fail = [&](std::string_view why) { fail_at(0, why); };
    if (!document_.is_object() || !document_.contains("nodes") || !document_["nodes"].is_array())
      fail("it has no list of nodes");
    if (!document_.contains("root") || !document_["root"].is_number_unsigned()) fail("it has no root");
    if (document_.contains("b64ndarrays") && !document_["b64ndarrays"].is_array()) fail("it has no list of tensors");
    nodes_ = &document_["nodes"];
    root_ = document_["root"].get<size_t>();
    if (root_ >= nodes_->size()) fail(fmt::format("there is no node {}", root_));
    made_.resize(nodes_->size());
  }

  // Runs `work`; an error gets the node and its place in the text.
  template <typename Work>
  void at_node(size_t place, Work&& work) {
    try {
      work();
    } catch (const UserError& error) {
      const auto& node = (*nodes_)[place];
      const std::string key = node.is_object() && node.contains("type_key") && node["type_key"].is_string()
                                  ? node["type_key"].template get<std::string>()
                                  : "";
      const std::string named = key.empty() ? "" : fmt::format(" ({})", key);
      throw TvmJsonError(fmt::format("node {}{}: {}", place, named, error.message()), offset_of_tvm_node(text_, place));
    }
  }

  // Returns whether a node is made; throws if there is none at the place.
  bool is_made(size_t place) const {
    if (place >= made_.size()) throw_user_error("there is no node {}", place);
    return made_[place].is_made;
  }

  const TvmDocument& node_at(size_t place) const {
    const TvmDocument& node = (*nodes_)[place];
    if (!node.is_object()) throw_user_error("it is not an object");
    return node;
  }

  static bool is_list(const std::string& key) { return key == "Array" || key == "Map" || key == "StrMap"; }

  static const TvmKind& kind_of(const std::string& key) {
    const TvmKind* kind = find_tvm_kind(key);
    if (kind != nullptr) return *kind;
    throw_user_error(
        "nodes of this kind are not read; those of types, variables, ops, constants, devices, scalars and lists of "
        "them are. Write a program as text there (mod.astext()), which Headrace reads");
  }

  static const std::string* attribute_of(const TvmDocument& node, std::string_view name) {
    const auto attributes = node.find("attrs");
    if (attributes == node.end()) return nullptr;
    if (!attributes->is_object()) throw_user_error("it has no attributes by name");
    const auto found = attributes->find(std::string(name));
    if (found == attributes->end()) return nullptr;
    if (!found->is_string()) throw_user_error("'{}' is not a string", name);
    return found->get_ptr<const std::string*>();
  }

  // Returns the place in an attribute; nothing for a string that is in place.
  std::optional<size_t> place_in(const TvmField& field, const std::string& text) const {
    if (text == "null" && field.form != TvmForm::text) return 0;
    if (field.form != TvmForm::text) return tvm_number_in<size_t>(field.name, text);
    size_t place = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), place);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    if (!is_number || place >= nodes_->size() || !(*nodes_)[place].is_object()) return std::nullopt;
    if (json_string((*nodes_)[place], "type_key") != "runtime.String") return std::nullopt;
    return place;
  }

  std::vector<size_t> listed_places(const TvmDocument& node) const {
    std::vector<size_t> places;
    if (!node.contains("data")) return places;
    const TvmDocument& data = node["data"];
    const auto is_place = [](const TvmDocument& item) { return item.is_number_unsigned(); };
    if (!data.is_array() || !std::all_of(data.begin(), data.end(), is_place))
      throw_user_error("it is not a list of places");
    for (const TvmDocument& item : data) places.push_back(item.get<size_t>());
    return places;
  }

  // Returns the places of the nodes that a node needs.
  std::vector<size_t> parts_of(size_t place) const {
    const TvmDocument& node = node_at(place);
    const std::string key = json_string(node, "type_key");
    if (key.empty()) return {};
    if (is_list(key)) return listed_places(node);
    std::vector<size_t> places;
    for (const TvmField& field : kind_of(key).fields) {
      if (field.form != TvmForm::node && field.form != TvmForm::text) continue;
      const std::string* text = attribute_of(node, field.name);
      if (text == nullptr) continue;
      if (const auto part = place_in(field, *text)) places.push_back(*part);
    }
    return places;
  }

  void finish(size_t place, const std::vector<size_t>& parts) {
    Made& made = made_[place];
    made.parts = 1;
    for (const size_t part : parts) {
      made.levels = std::max(made.levels, made_[part].levels + 1);
      made.parts += made_[part].parts;
      if (made.parts > kMaxTvmParts) throw_user_error("it has more than {} parts", kMaxTvmParts);
    }
    if (made.levels > kMaxTvmLevels) throw_user_error("it nests deeper than {} levels", kMaxTvmLevels);
    made.value = make(node_at(place), parts);
    made.is_made = true;
  }

  Value make(const TvmDocument& node, const std::vector<size_t>& parts) {
    const std::string key = json_string(node, "type_key");
    if (key.empty()) return {};
    if (key == "Array") return make_array(parts);
    if (is_list(key)) return make_map(node, parts);
    const TvmKind& kind = kind_of(key);
    TvmFields fields;
    for (const TvmField& field : kind.fields) {
      if (field.form == TvmForm::repr) {
        fields.set(field.name, Value(repr_of_tvm_node(node)));
      } else if (const std::string* text = attribute_of(node, field.name)) {
        fields.set(field.name, value_of(field, *text));
      }
    }
    return kind.make(fields);
  }

  Value make_array(const std::vector<size_t>& parts) const {
    const auto array = make_object<ArrayObj>();
    for (const size_t part : parts) array->items.push_back(made_[part].value);
    return Value(array);
  }

  // Makes a map whose keys are strings, or nodes that alternate with the values.
  Value make_map(const TvmDocument& node, const std::vector<size_t>& parts) const {
    const bool has_keys = node.contains("keys") && node["keys"].is_array() && !node["keys"].empty();
    if (has_keys ? node["keys"].size() != parts.size() : parts.size() % 2 != 0)
      throw_user_error("its numbers of keys and values differ");
    const auto map = make_object<MapObj>();
    for (size_t i = 0; i < parts.size(); i += has_keys ? 1 : 2) {
      if (has_keys && !node["keys"][i].is_string()) throw_user_error("a key is not a string");
      Value key = has_keys ? Value(node["keys"][i].get<std::string>()) : made_[parts[i]].value;
      if (map->find(key.raw()) != nullptr) throw_user_error("it has a key twice");
      map->set(std::move(key), made_[parts[has_keys ? i : i + 1]].value);
    }
    return Value(map);
  }

  Value value_of(const TvmField& field, const std::string& text) {
    switch (field.form) {
      case TvmForm::node:
      case TvmForm::text:
        if (const auto place = place_in(field, text)) return made_[*place].value;
        return Value(text);
      case TvmForm::tensor:
        return Value(tensor_at(tvm_number_in<size_t>(field.name, text)));
      case TvmForm::integer:
        return Value(tvm_number_in<int64_t>(field.name, text));
      case TvmForm::real:
        return Value(tvm_number_in<double>(field.name, text));
      case TvmForm::dtype:
        return Value(DataType::parse(text));
      case TvmForm::repr:
        break;
    }
    return {};
  }

  NDArray tensor_at(size_t index) {
    if (const auto known = tensors_.find(index); known != tensors_.end()) return known->second;
    const auto list = document_.find("b64ndarrays");
    if (list == document_.end() || index >= list->size()) throw_user_error("there is no tensor {}", index);
    const TvmDocument& item = (*list)[index];
    if (!item.is_string()) throw_user_error("tensor {} is not a string", index);
    const NDArray tensor = read_tvm_tensor(decode_base64(item.get_ref<const std::string&>()));
    return tensors_.emplace(index, tensor).first->second;
  }

  std::string_view text_;
  TvmDocument document_;
  const TvmDocument* nodes_ = nullptr;  // a list in the document
  size_t root_ = 0;
  std::vector<Made> made_;
  std::map<size_t, NDArray> tensors_;  // by place; nodes may share one
};

}  // namespace

bool is_tvm_json(std::string_view text) {
  return text.find("\"b64ndarrays\"") != std::string_view::npos ||
         text.find("\"tvm_version\"") != std::string_view::npos;
}

Value read_tvm_json(std::string_view text) { return TvmGraph(text).root(); }

}  // namespace headrace::relay
