// Constants: scalars, small tensors, the metadata block.
#include <cmath>

#include "ir/text_names.h"
#include "ir/virtual_device.h"
#include "object/base64.h"
#include "object/json.h"
#include "relay/text/parser.h"
#include "relay/text/tvm_json.h"

namespace headrace::relay {

// Puts the low bytes of `bits` at element `index`.
static void put_bits(const NDArray& data, int64_t index, uint64_t bits) {
  const size_t size = data.dtype().bytes();
  std::memcpy(data.data<std::byte>() + static_cast<size_t>(index) * size, &bits, size);
}

void Parser::set_integer(const NDArray& data, int64_t index, const Token& number, bool negative) {
  const auto bits = integer_bits(number.text, negative, data.dtype());
  if (!bits) fail(number, integer_misfit(number.text, negative, data.dtype()));
  put_bits(data, index, *bits);
}

void Parser::set_real(const NDArray& data, int64_t index, const Token& number, bool negative) {
  const DataType dtype = data.dtype();
  const auto bits = real_bits(number.text, dtype);
  if (!bits) fail(number, fmt::format("{} does not fit {}", number.text, dtype));
  put_bits(data, index, negative ? *bits | uint64_t{1} << (dtype.bits() - 1) : *bits);
}

void Parser::set_literal(const NDArray& data, int64_t index, const Token& number, bool negative) {
  const bool is_number = number.kind == TokenKind::integer || number.kind == TokenKind::real;
  if (!is_number) fail(number, fmt::format("expected a number, found '{}'", number.text));
  if (data.dtype().is_narrow_float())
    fail(number, fmt::format("elements of {} have no literals; they are written in the metadata block", data.dtype()));
  if (data.dtype().is_float()) return set_real(data, index, number, negative);
  if (number.kind == TokenKind::real) fail(number, fmt::format("{} is not of {}", number.text, data.dtype()));
  set_integer(data, index, number, negative);
}

// An integer without a suffix is int64 where int32 does not hold it, as in Relay.
NDArray Parser::scalar(const Token& number, bool negative) {
  auto dtype = dtype_of_suffix(number.suffix, number.kind == TokenKind::real);
  const bool is_plain = number.kind == TokenKind::integer && number.suffix.empty();
  if (is_plain && !integer_bits(number.text, negative, DataType::int_(32))) dtype = DataType::int_(64);
  if (!dtype)
    fail(number, fmt::format("'{}' is not a suffix of a number; suffixes are f f16 f64 bf16 i8 i16 i32 i64 u8 ...",
                             number.suffix));
  const NDArray data = NDArray::empty({}, *dtype);
  set_literal(data, 0, number, negative);
  return data;
}

int64_t Parser::small_integer(const Token& number, std::string_view what) {
  const bool is_plain = number.kind == TokenKind::integer && number.suffix.empty();
  const auto bits = is_plain ? integer_bits(number.text, false, DataType::int_(64)) : std::nullopt;
  if (!bits) fail(number, fmt::format("expected {}, found '{}'", what, number.text));
  return static_cast<int64_t>(*bits);
}

// Parses const(Tensor[(2, 2), float32], [1, 2, 3, 4])
NDArray Parser::small_tensor(const Token& first) {
  take();
  expect("(", "after const");
  const Type read = type().run();
  const auto* tensor = read.as<TensorTypeNode>();
  const auto shape = tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
  const bool has_elements =
      tensor != nullptr && !tensor->dtype.is_handle() && !tensor->dtype.is_void() && tensor->dtype.lanes() == 1;
  if (!shape || !has_elements)
    fail(first, "a constant has a tensor type with integer dimensions and a dtype of numbers");
  expect(",", "after a constant's type");
  expect("[", "before a constant's elements");
  std::vector<std::pair<Token, bool>> elements;
  comma_separated("]", "after a constant's elements", [&] {
    const bool negative = accept("-");
    elements.emplace_back(take(), negative);
  });
  expect(")", "after a constant");
  // Before any memory is taken: a hostile shape is larger than its elements.
  const int64_t count = static_cast<int64_t>(elements.size());
  int64_t wanted = 0;
  try {
    wanted = num_elements(*shape);
  } catch (const UserError& error) {
    fail(first, error.message());
  }
  if (wanted != count) fail(first, fmt::format("the type has {} elements, but {} are given", wanted, count));
  const NDArray data = NDArray::empty(*shape, tensor->dtype);
  for (int64_t i = 0; i < count; ++i) {
    const auto& [token, negative] = elements[static_cast<size_t>(i)];
    const bool is_word = token.is("True") || token.is("False");
    if (!tensor->dtype.is_bool() || token.kind == TokenKind::integer) {
      set_literal(data, i, token, negative);
    } else {
      if (!is_word) fail(token, fmt::format("expected True or False, found '{}'", token.text));
      put_bits(data, i, token.is("True") ? 1 : 0);
    }
  }
  return data;
}

// Parses meta[relay.Constant]
Token Parser::meta_kind() {
  take();
  expect("[", "after meta");
  const Token kind = take();
  expect("]", fmt::format("after {}", kind.text));
  return kind;
}

// Parses the index [3] of `what`.
int64_t Parser::meta_index(std::string_view what) {
  expect("[", fmt::format("before the number of {}", what));
  const int64_t index = small_integer(take(), fmt::format("the number of {}", what));
  expect("]", fmt::format("after the number of {}", what));
  return index;
}

// Parses meta[relay.Constant][3]
NDArray Parser::meta_constant(const Token& first) {
  meta_kind();
  const int64_t index = meta_index("a constant");
  const std::vector<NDArray>& data = data_of_constants();
  if (index >= static_cast<int64_t>(data.size())) {
    without_data_.emplace_back(first, index);
    return NDArray::empty({}, DataType::float_(32));  // a stand-in, so that reading goes on
  }
  return data[static_cast<size_t>(index)];
}

ObjectRef Parser::meta_node(const Token& first) {
  const std::string kind(meta_kind().text);
  const int64_t index = meta_index("a node");
  const auto own = nodes_.find(kind);
  const auto given = options_.meta_nodes.get(kind);
  const size_t count = own != nodes_.end() ? own->second.size() : given ? given->size() : 0;
  if (static_cast<size_t>(index) >= count)
    fail(first,
         fmt::format("there is no {} {}: the text has {} (its #[metadata] block holds them, or init_meta_table in "
                     "Python)",
                     kind, index, count));
  return own != nodes_.end() ? own->second[static_cast<size_t>(index)] : (*given)[static_cast<size_t>(index)];
}

// Parses meta[relay.Constant][3], or an expression of another kind.
Expr Parser::meta_expression(const Token& first) {
  if (peek(2).is("relay.Constant")) return make_constant(meta_constant(first), span_from(first));
  if (peek(2).is("VirtualDevice")) fail(first, "a virtual device is the value of an attribute, and no expression");
  const ObjectRef node = meta_node(first);
  if (!node.is<ExprNode>()) fail(first, fmt::format("a {} is not an expression", node->key()));
  return node.cast<ExprNode>();
}

// Reports missing data once for all constants, because a forgotten file holds the data of all of them. They are no
// errors of their own where the metadata could not be read.
void Parser::report_constants_without_data() {
  if (without_data_.empty() || is_metadata_damaged_) return;
  const auto& [token, index] = without_data_.front();
  const size_t more = without_data_.size() - 1;
  report(
      token,
      fmt::format("there is no data for constant {}{}: the text has {} (its #[metadata] block, or the weights "
                  "file it was written with, holds them: --input-weights FILE; in Python weights= or init_meta_table=)",
                  index, more == 0 ? "" : fmt::format(" and {} more", more), data_of_constants().size()));
}

void Parser::metadata_item(const Token& first, const Value& item) {
  if (!item.is<Map<std::string, Value>>()) fail(first, "a constant of the metadata is a map");
  const auto fields = item.as<Map<std::string, Value>>();
  for (const char* name : {"dtype", "shape", "data"}) {
    if (!fields.contains(name)) fail(first, fmt::format("a constant of the metadata has no '{}'", name));
  }
  try {
    const DataType dtype = fields.at("dtype").as<DataType>();
    const std::vector<std::byte> bytes = decode_base64(fields.at("data").as<std::string>());
    constants_.push_back(NDArray::from_bytes(fields.at("shape").as<Shape>(), dtype, bytes));
  } catch (const UserError& error) {
    fail(first, fmt::format("constant {} of the metadata: {}", constants_.size(), error.message()));
  }
}

// Reads "VirtualDevice": ["cuda:0", ...]
void Parser::metadata_devices(const Token& first, const Value& list) {
  if (!list.is<Array<std::string>>()) fail(first, "\"VirtualDevice\" of the metadata is a list of texts");
  for (const std::string& text : list.as<Array<std::string>>()) devices_.push_back(device_text(first, Value(text)));
}

// Reads "relay.attrs.SomeAttrs": ["{...}", ...], texts of JSON.
void Parser::metadata_nodes(const Token& first, const std::string& kind, const Value& list) {
  if (!list.is<Array<std::string>>())
    fail(first, fmt::format("{} of the metadata is a list of JSON texts", in_quotes(kind)));
  for (const std::string& text : list.as<Array<std::string>>()) {
    try {
      nodes_[kind].push_back(load_json(text).as<ObjectRef>());
    } catch (const UserError& error) {
      fail(first, fmt::format("{} of the metadata: {}", in_quotes(kind), error.message()));
    }
  }
}

// Returns whether the block here is a graph as TVM writes it; Headrace's own begins with a version.
bool Parser::at_tvm_metadata() const {
  const Token& key = peek(1);
  return at("{") && peek(2).is(":") && key.kind == TokenKind::string &&
         (unquote(key.text) == "root" || unquote(key.text) == "nodes");
}

// Reads the block from here to the end of the text: a map of lists of nodes, by kind.
void Parser::tvm_metadata(const Token& first) {
  using Lists = Map<std::string, Array<ObjectRef>>;
  const size_t begin = peek().offset;
  Value root;
  try {
    root = read_tvm_json(text_.substr(begin));
  } catch (const TvmJsonError& error) {
    errors_.report(begin + error.offset(), 1, "the metadata of TVM: " + error.message());
    throw SyntaxError();
  }
  if (!root.is<Lists>()) fail(first, "the metadata of TVM is not a map of lists of nodes");
  for (const auto& [kind, nodes] : root.as<Lists>()) {
    for (const ObjectRef& node : nodes) {
      const auto constant = node.cast<ConstantNode>();
      const auto device = node.cast<VirtualDeviceNode>();
      if (kind == "relay.Constant" ? !constant : kind == "VirtualDevice" ? !device : !node)
        fail(first, fmt::format("the metadata of TVM has another node among those of the kind {}", in_quotes(kind)));
      if (constant) constants_.push_back(constant->data);
      if (device) devices_.push_back(to_string(device));
      if (!constant && !device) nodes_[kind].push_back(node);
    }
  }
  has_metadata_ = !constants_.empty();
  if (has_metadata_) refuse_weights(first);
}

// Refuses other data for constants that have theirs in the text.
void Parser::refuse_weights(const Token& first) {
  if (options_.weights == nullptr) return;
  fail(first,
       "the text holds the data of its constants itself: read it without a weights file or a table of constants");
}

// Reads the block from here to the end of the text, which begins with a version.
void Parser::own_metadata(const Token& first) {
  const Value root = value(0);
  if (!root.is<Map<std::string, Value>>()) fail(first, "the metadata is a map");
  const auto map = root.as<Map<std::string, Value>>();
  if (const auto version = map.get("version");
      !version || version->type_index() != type_index::kInt || version->as<int64_t>() != 1)
    fail(first, "the metadata has no \"version\": 1, the only version there is");
  const auto list = map.get("relay.Constant");
  if (const auto devices = map.get("VirtualDevice")) metadata_devices(first, *devices);
  for (const auto& [kind, nodes] : map) {
    if (kind != "version" && kind != "relay.Constant" && kind != "VirtualDevice") metadata_nodes(first, kind, nodes);
  }
  const bool may_lack_constants = !list && (!devices_.empty() || !nodes_.empty());
  if (!may_lack_constants && (!list || !list->is<Array<Value>>()))
    fail(first, "the metadata has no list \"relay.Constant\"");
  if (list) refuse_weights(first);
  has_metadata_ = list.has_value();
  if (list) {
    for (const Value& item : list->as<Array<Value>>()) metadata_item(first, item);
  }
  if (peek().kind != TokenKind::end) fail_expected("the end of the text after the metadata");
}

// Reads the block whose `#[` is token `at`, then goes back.
void Parser::metadata(size_t at) {
  const size_t back = std::exchange(at_, at);
  const Token first = take();
  take();
  expect("]", "after metadata");
  is_metadata_damaged_ = true;  // until it is read
  if (at_tvm_metadata()) {
    tvm_metadata(first);
  } else {
    own_metadata(first);
  }
  is_metadata_damaged_ = false;
  at_ = back;
}

}  // namespace headrace::relay
