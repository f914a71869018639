#include "frontend/onnx/file/with_initializers.h"

#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/file/read_values.h"

namespace headrace::onnx {

namespace {

// Returns elements below 8 bits as raw data, in which they share bytes.
std::string pack(const NDArray& tensor, ElementType type) {
  const char* elements = tensor.data<const char>();
  const auto bits = static_cast<size_t>(stored_bits(type));
  std::string bytes(static_cast<size_t>(stored_bytes(type, tensor.num_elements())), '\0');
  const unsigned mask = (1u << bits) - 1;
  for (size_t i = 0; i < tensor.size_bytes(); ++i) {
    const unsigned place = (static_cast<unsigned char>(elements[i]) & mask) << (i * bits % 8);
    bytes[i * bits / 8] = static_cast<char>(static_cast<unsigned char>(bytes[i * bits / 8]) | place);
  }
  return bytes;
}

// Appends to a message and checks that it stays short enough.
class Message {
 public:
  explicit Message(std::string_view source) : source_(source) {}

  void append(const char* begin, const char* end) {
    reserve(static_cast<size_t>(end - begin));
    bytes_.append(begin, end);
  }

  void append_tensor(uint32_t field, std::string_view name, const NDArray& tensor) {
    const ElementType type = find_element_type(tensor.dtype().to_string());
    if (element_size_bytes(type) == 0)
      throw_user_error("initialiser {}: ONNX has no tensors of {}", printable(name), tensor.dtype().to_string());
    const std::string packed = stored_bits(type) < 8 ? pack(tensor, type) : std::string();
    const std::string_view bytes =
        stored_bits(type) < 8 ? packed : std::string_view(tensor.data<const char>(), tensor.size_bytes());
    reserve(bytes.size() + name.size());
    protozero::pbf_writer writer(bytes_);
    protozero::pbf_writer message(writer, field);
    for (const int64_t dim : tensor.shape()) message.add_int64(1, dim);
    message.add_int32(2, static_cast<int32_t>(type));
    message.add_string(8, name.data(), name.size());
    message.add_bytes(9, bytes.data(), bytes.size());
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void reserve(size_t size_bytes) const {
    constexpr size_t kKeysAndLengths = 4096;
    if (size_bytes > kLongestMessage - kKeysAndLengths ||
        bytes_.size() > kLongestMessage - kKeysAndLengths - size_bytes)
      throw_user_error("'{}' would be longer than {} bytes with these initialisers", source_, kLongestMessage);
  }

  std::string_view source_;
  std::string bytes_;
};

Message rewritten_graph(const Source& source, std::string_view bytes, const Place& parent,
                        const std::map<std::string, NDArray, std::less<>>& replaced,
                        const std::set<std::string, std::less<>>& dropped) {
  Message graph(source.name);
  const Place place{.parent = &parent, .what = "graph"};
  FieldReader reader(source, bytes, place);
  for (const char* begin = reader.position(); reader.next(); begin = reader.position()) {
    if (reader.field() != kGraphInitializer) {
      reader.skip();
      graph.append(begin, reader.position());
      continue;
    }
    TensorProto tensor;
    read_tensor(source, reader.read_bytes(), &place, "initializer", tensor);
    if (const auto found = replaced.find(tensor.name); found != replaced.end()) {
      graph.append_tensor(kGraphInitializer, tensor.name, found->second);
    } else if (!dropped.contains(tensor.name)) {
      graph.append(begin, reader.position());
    }
  }
  return graph;
}

}  // namespace

std::string with_initializers(std::span<const std::byte> model, std::string_view source,
                              const std::map<std::string, NDArray, std::less<>>& replaced,
                              const std::set<std::string, std::less<>>& dropped) {
  const std::string_view bytes(reinterpret_cast<const char*>(model.data()), model.size());
  const Source from{bytes.data(), source};
  const Place place{.what = "model"};
  FieldReader reader(from, bytes, place);
  std::string result;
  for (const char* begin = reader.position(); reader.next(); begin = reader.position()) {
    if (reader.field() == kModelGraph) {
      const Message graph = rewritten_graph(from, reader.read_bytes(), place, replaced, dropped);
      protozero::pbf_writer(result).add_message(kModelGraph, graph.bytes());
    } else {
      reader.skip();
      result.append(begin, reader.position());
    }
  }
  return result;
}

}  // namespace headrace::onnx
