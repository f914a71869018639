#include "executors/pipeline/isolation/wire.h"

#include <fmt/ranges.h>

#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "artifact/tensor_extent.h"
#include "base/error.h"

namespace headrace::executors::pipeline::isolation {
namespace {

constexpr size_t kAlignment = 64;
constexpr int kMostDepth = 32;              // nesting of arrays in arrays
constexpr size_t kMostText = 16 * 1024;     // per text of an error
constexpr size_t kMostPayload = 64 * 1024;  // per exception
constexpr std::array<std::string ErrorObj::*, 5> kErrorTexts = {&ErrorObj::kind, &ErrorObj::message, &ErrorObj::op,
                                                                &ErrorObj::place, &ErrorObj::traceback};

enum class WireKind : uint32_t { none, boolean, integer, number, text, bytes, tensor, array, object, error };

constexpr size_t aligned(size_t nbytes) { return (nbytes + kAlignment - 1) / kAlignment * kAlignment; }

[[noreturn]] void throw_malformed(std::string_view what) { throw_user_error("the memory of the stage has {}", what); }

}  // namespace

struct WireWriter::Header {
  WireKind kind = WireKind::none;
  uint32_t rank = 0;    // rank of a tensor; its shape follows
  uint64_t number = 0;  // the bits of a number, or the items of an array
  uint64_t nbytes = 0;  // bytes that follow
  DLDataType dtype{};
  uint32_t reserved = 0;
};

std::optional<size_t> wire_nbytes(const artifact::TensorSpec& spec) {
  const std::optional<int64_t> nbytes = artifact::tensor_nbytes(spec.dtype, spec.shape);
  if (!nbytes) return std::nullopt;
  return aligned(sizeof(int64_t) * (4 + spec.shape.size())) + aligned(static_cast<size_t>(*nbytes));
}

// ---- Writing.

std::byte* WireWriter::take(size_t nbytes) {
  if (aligned(nbytes) < nbytes || aligned(nbytes) > memory_.size() - size_)
    throw_user_error(
        "the values are larger than the {} bytes that a call of a stage in a process of its own may have; pass smaller "
        "ones, or several requests",
        memory_.size());
  std::byte* place = memory_.data() + size_;
  size_ += aligned(nbytes);
  return place;
}

std::byte* WireWriter::put_header(const Header& header) {
  std::byte* place = take(sizeof(Header) + header.rank * sizeof(int64_t));
  std::memcpy(place, &header, sizeof(Header));
  return place;
}

void WireWriter::put_text(std::string_view text) {
  put_header({.kind = WireKind::text, .nbytes = text.size()});
  std::memcpy(take(text.size()), text.data(), text.size());
}

WireTensor WireWriter::reserve(DataType dtype, std::span<const int64_t> shape) {
  const std::optional<int64_t> nbytes = artifact::tensor_nbytes(dtype, shape);
  if (!nbytes) throw_user_error("{} ({}) is not a type of a tensor", dtype, fmt::join(shape, ", "));
  std::byte* header = put_header({.kind = WireKind::tensor,
                                  .rank = static_cast<uint32_t>(shape.size()),
                                  .nbytes = static_cast<uint64_t>(*nbytes),
                                  .dtype = dtype.raw()});
  std::memcpy(header + sizeof(Header), shape.data(), shape.size_bytes());
  return {.dtype = dtype,
          .shape = Shape(shape.begin(), shape.end()),
          .data = take(static_cast<size_t>(*nbytes)),
          .nbytes = static_cast<size_t>(*nbytes)};
}

void WireWriter::cut(const WireTensor& tensor, std::span<const int64_t> shape) {
  std::byte* header = tensor.data - aligned(sizeof(Header) + tensor.shape.size() * sizeof(int64_t));
  std::memcpy(header + sizeof(Header), shape.data(), shape.size_bytes());
}

void WireWriter::put_sequence(const Value& value) {
  const auto items = value.as<Array<Value>>();
  put_header({.kind = WireKind::array, .number = items.size()});
  for (const Value& item : items) put(item);
}

void WireWriter::put_object(const Value& value) {
  if (codec_ == nullptr)
    throw_user_error(
        "a {} cannot pass to a stage in a process of its own; pass tensors, numbers, texts, or arrays of them",
        kind_name(value.raw()));
  const std::string bytes = codec_->pack(value);
  put_header({.kind = WireKind::object, .nbytes = bytes.size()});
  std::memcpy(take(bytes.size()), bytes.data(), bytes.size());
}

void WireWriter::put(const Value& value) {
  if (value.is_none()) {
    put_header({});
  } else if (value.type_index() == type_index::kBool || value.type_index() == type_index::kInt) {
    const bool is_bool = value.type_index() == type_index::kBool;
    put_header({.kind = is_bool ? WireKind::boolean : WireKind::integer,
                .number = static_cast<uint64_t>(value.as<int64_t>())});
  } else if (value.type_index() == type_index::kFloat) {
    put_header({.kind = WireKind::number, .number = std::bit_cast<uint64_t>(value.as<double>())});
  } else if (is_string(value.raw())) {
    put_text(string_of(value.raw()));
  } else if (is_bytes(value.raw())) {
    const std::string_view bytes = string_of(value.raw());
    put_header({.kind = WireKind::bytes, .nbytes = bytes.size()});
    std::memcpy(take(bytes.size()), bytes.data(), bytes.size());
  } else if (matches_item<NDArray>(value.raw())) {
    const auto array = value.as<NDArray>();
    const WireTensor place = reserve(array.dtype(), array.shape());
    NDArray::view(place.data, array.shape(), array.dtype()).copy_from(array);
  } else if (value.is<Array<Value>>()) {
    put_sequence(value);
  } else {
    put_object(value);
  }
}

void WireWriter::put_error(const ErrorObj* error) {
  if (error == nullptr) {
    put_header({});
    return;
  }
  std::string payload = codec_ == nullptr ? std::string() : codec_->pack_error(*error);
  if (payload.size() > kMostPayload) payload.clear();
  put_header({.kind = WireKind::error});
  for (const auto field : kErrorTexts) put_text(std::string_view(error->*field).substr(0, kMostText));
  put_text(payload);
}

// ---- Reading.

std::byte* WireReader::take_bytes(uint64_t nbytes) {
  if (nbytes > memory_.size() || aligned(nbytes) > memory_.size() - at_) throw_malformed("a value past its end");
  std::byte* place = memory_.data() + at_;
  at_ += aligned(nbytes);
  return place;
}

WireReader::Header WireReader::take_header() {
  Header header;
  if (memory_.size() - at_ < sizeof(Header)) throw_malformed("fewer values than it should");
  std::memcpy(&header, memory_.data() + at_, sizeof(Header));
  if (header.kind > WireKind::error) throw_malformed("a value of an unknown kind");
  if (header.rank > artifact::kMaxRank) throw_malformed("a tensor of too many dimensions");
  take_bytes(sizeof(Header) + header.rank * sizeof(int64_t));
  return header;
}

std::string WireReader::take_text() {
  const Header header = take_header();
  if (header.kind != WireKind::text) throw_malformed("no text where one should be");
  return {reinterpret_cast<const char*>(take_bytes(header.nbytes)), header.nbytes};
}

WireTensor WireReader::tensor_of(const Header& header) {
  if (header.kind != WireKind::tensor) throw_malformed("no tensor where one should be");
  WireTensor tensor{.dtype = DataType(header.dtype), .shape = Shape(header.rank)};
  const std::byte* shape = memory_.data() + at_ - aligned(sizeof(Header) + header.rank * sizeof(int64_t));
  std::memcpy(tensor.shape.data(), shape + sizeof(Header), header.rank * sizeof(int64_t));
  const bool is_known = header.dtype.code <= kDLBool && header.dtype.code != kDLOpaqueHandle;
  const std::optional<int64_t> nbytes =
      is_known ? artifact::tensor_nbytes(tensor.dtype, tensor.shape) : std::optional<int64_t>();
  if (!nbytes) throw_malformed("a tensor of a type that no tensor has");
  tensor.nbytes = static_cast<size_t>(*nbytes);
  // One that was cut to its shape still has the memory of the largest one.
  if (header.nbytes < tensor.nbytes) throw_malformed("a tensor with too few bytes");
  tensor.data = take_bytes(header.nbytes);
  return tensor;
}

WireTensor WireReader::take_tensor() { return tensor_of(take_header()); }

Value WireReader::take_array(const Header& header, bool views) {
  if (++depth_ > kMostDepth) throw_malformed("arrays in arrays, too many of them");
  if (header.number > (memory_.size() - at_) / kAlignment) throw_malformed("an array past its end");
  Array<Value> items;
  for (uint64_t i = 0; i < header.number; ++i) items.push_back(take(views));
  --depth_;
  return Value(items);
}

Value WireReader::take(bool views) {
  const Header header = take_header();
  switch (header.kind) {
    case WireKind::none:
      return {};
    case WireKind::boolean:
      return Value(header.number != 0);
    case WireKind::integer:
      return Value(static_cast<int64_t>(header.number));
    case WireKind::number:
      return Value(std::bit_cast<double>(header.number));
    case WireKind::array:
      return take_array(header, views);
    case WireKind::tensor: {
      WireTensor tensor = tensor_of(header);
      const NDArray view = NDArray::view(tensor.data, std::move(tensor.shape), tensor.dtype);
      return Value(views ? view : view.copy());
    }
    case WireKind::text:
    case WireKind::bytes:
    case WireKind::object:
    case WireKind::error:
      break;
  }
  if (header.kind == WireKind::error) throw_malformed("an error where a value should be");
  std::string bytes(reinterpret_cast<const char*>(take_bytes(header.nbytes)), header.nbytes);
  if (header.kind == WireKind::text) return Value(std::move(bytes));
  if (header.kind == WireKind::bytes) return Value(Bytes{std::move(bytes)});
  if (codec_ == nullptr) throw_malformed("an object of another language");
  return codec_->unpack(bytes);
}

Ref<ErrorObj> WireReader::take_error() {
  const Header header = take_header();
  if (header.kind == WireKind::none) return {};
  if (header.kind != WireKind::error) throw_malformed("no error where one should be");
  Ref<ErrorObj> error = make_object<ErrorObj>();
  for (const auto field : kErrorTexts) (*error).*field = take_text();
  const std::string payload = take_text();
  if (!payload.empty() && codec_ != nullptr) codec_->unpack_error(*error, payload);
  return error;
}

// ---- Ports.

namespace {

constexpr int64_t kMostMemory = int64_t{1} << 60;  // sums of several do not overflow

Value value_of(const Port& port, bool is_shared) {
  return Value(Array<Value>{Value(port.name()), port.is_any ? Value() : Value(port.spec.dtype.to_string()),
                            Value(Array<Value>(port.spec.shape.begin(), port.spec.shape.end())), Value(is_shared)});
}

Port port_of_value(const Value& value, bool& is_shared) {
  const auto fields = value.as<Array<Value>>();
  const Value dtype = fields.at(1);
  Port port{.spec = {.name = fields.at(0).as<std::string>(), .dtype = {}, .shape = {}}, .is_any = dtype.is_none()};
  if (!port.is_any) port.spec.dtype = DataType::parse(dtype.as<std::string>());
  for (const Value& extent : fields.at(2).as<Array<Value>>()) port.spec.shape.push_back(extent.as<int64_t>());
  is_shared = fields.at(3).as<bool>();
  if (!port.is_any && !wire_nbytes(port.spec)) throw_malformed("a port of a type that no tensor has");
  return port;
}

Value value_of(const FallbackEvent& event) {
  return Value(Array<Value>{Value(event.region), Value(event.backend), Value(event.reason == HR_REASON_BACKEND_MISSING),
                            Value(event.message)});
}

FallbackEvent fallback_of_value(const Value& value) {
  const auto fields = value.as<Array<Value>>();
  return {.region = fields.at(0).as<std::string>(),
          .backend = fields.at(1).as<std::string>(),
          .reason = fields.at(2).as<bool>() ? HR_REASON_BACKEND_MISSING : HR_REASON_BACKEND_FAILED,
          .message = fields.at(3).as<std::string>()};
}

}  // namespace

CodePorts ports_of_code(const StageCode& code) {
  CodePorts ports{.inputs = code.inputs(), .outputs = code.outputs(), .most_in_batch = code.most_in_batch()};
  for (size_t i = 0; i < ports.inputs.size(); ++i) ports.are_shared.push_back(code.is_shared(i));
  MemoryUse memory;
  code.add_memory(memory);
  ports.memory_bytes = memory.total_bytes();
  ports.fallbacks = code.fallbacks();
  return ports;
}

void put_ports(WireWriter& writer, const CodePorts& ports) {
  Array<Value> inputs, outputs;
  for (size_t i = 0; i < ports.inputs.size(); ++i) inputs.push_back(value_of(ports.inputs[i], ports.are_shared[i]));
  for (const Port& port : ports.outputs) outputs.push_back(value_of(port, false));
  Array<Value> fallbacks;
  for (const FallbackEvent& event : ports.fallbacks) fallbacks.push_back(value_of(event));
  writer.put(Value(Array<Value>{Value(int64_t{ports.most_in_batch}), Value(inputs), Value(outputs),
                                Value(ports.memory_bytes), Value(fallbacks)}));
}

CodePorts take_ports(WireReader& reader) {
  const Value value = reader.take();
  const auto fields = value.as<Array<Value>>();
  CodePorts ports{.most_in_batch = fields.at(0).as<int32_t>()};
  if (ports.most_in_batch < 0 || ports.most_in_batch > artifact::kMostInBatch)
    throw_malformed("a batch that no stage takes");
  ports.memory_bytes = fields.at(3).as<int64_t>();
  if (ports.memory_bytes < 0 || ports.memory_bytes > kMostMemory) throw_malformed("memory that no machine has");
  bool is_shared = false;
  for (const Value& input : fields.at(1).as<Array<Value>>()) {
    ports.inputs.push_back(port_of_value(input, is_shared));
    ports.are_shared.push_back(is_shared);
  }
  for (const Value& output : fields.at(2).as<Array<Value>>()) ports.outputs.push_back(port_of_value(output, is_shared));
  for (const Value& event : fields.at(4).as<Array<Value>>()) ports.fallbacks.push_back(fallback_of_value(event));
  return ports;
}

}  // namespace headrace::executors::pipeline::isolation
