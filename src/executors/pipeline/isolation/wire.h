// Values as bytes in memory that two processes share.
//
// Each value is a header and what follows it, at a multiple of 64 bytes. The other process may be broken, or write
// while this one reads: a reader copies a header before it checks it, and refuses what does not fit into the memory.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executors/pipeline/isolation/process_options.h"
#include "executors/pipeline/port.h"
#include "tensor/ndarray.h"

namespace headrace::executors::pipeline::isolation {

// Turns values of another language, and its exceptions, to bytes and back. Functions throw for what they cannot turn.
class ObjectCodec {
 public:
  ObjectCodec() = default;
  ObjectCodec(const ObjectCodec&) = delete;
  ObjectCodec& operator=(const ObjectCodec&) = delete;
  virtual ~ObjectCodec() = default;

  virtual std::string pack(const Value& value) const = 0;
  virtual Value unpack(const std::string& bytes) const = 0;
  // Returns what lets the other process raise the same exception again; empty: nothing does.
  virtual std::string pack_error(const ErrorObj& error) const = 0;
  virtual void unpack_error(ErrorObj& error, const std::string& bytes) const = 0;
};

// A tensor in the memory.
struct WireTensor {
  DataType dtype;
  Shape shape;
  std::byte* data = nullptr;
  size_t nbytes = 0;
};

// Returns the bytes that a tensor of that type takes in the memory; nothing where no tensor has the type.
std::optional<size_t> wire_nbytes(const artifact::TensorSpec& spec);

// Puts values one after another.
class WireWriter {
 public:
  // `codec` may be null: then values of other languages are refused.
  WireWriter(std::span<std::byte> memory, const ObjectCodec* codec) : memory_(memory), codec_(codec) {}

  // UserError for a value that does not fit into the memory any more, and for a kind of value that only one process
  // can use.
  void put(const Value& value);
  // Puts a tensor whose elements the caller writes later.
  WireTensor reserve(DataType dtype, std::span<const int64_t> shape);
  // Changes the shape of a tensor that was reserved to one with as many dimensions and no more elements.
  static void cut(const WireTensor& tensor, std::span<const int64_t> shape);
  // Puts an error; null: that there is none. Long texts are cut.
  void put_error(const ErrorObj* error);
  size_t size() const { return size_; }
  // Takes back what was put since the size was that.
  void rewind(size_t size) { size_ = size; }

 private:
  struct Header;
  std::byte* take(size_t nbytes);
  std::byte* put_header(const Header& header);
  void put_text(std::string_view text);
  void put_sequence(const Value& value);
  void put_object(const Value& value);

  std::span<std::byte> memory_;
  const ObjectCodec* codec_;
  size_t size_ = 0;

  friend class WireReader;
};

// Takes the values in the order in which they were put. All functions throw UserError for bytes that are no such value.
class WireReader {
 public:
  WireReader(std::span<std::byte> memory, const ObjectCodec* codec) : memory_(memory), codec_(codec) {}

  // Returns the next value. Tensors are copies; with `views`, they lie in the memory.
  Value take(bool views = false);
  WireTensor take_tensor();
  // Returns null where no error was put.
  Ref<ErrorObj> take_error();

 private:
  using Header = WireWriter::Header;
  Header take_header();
  std::byte* take_bytes(uint64_t nbytes);
  std::string take_text();
  WireTensor tensor_of(const Header& header);
  Value take_array(const Header& header, bool views);

  std::span<std::byte> memory_;
  const ObjectCodec* codec_;
  size_t at_ = 0;
  int depth_ = 0;
};

// Describes a stage's code for the process that calls it.
struct CodePorts {
  std::vector<Port> inputs = {}, outputs = {};
  std::vector<bool> are_shared = {};  // one per input
  int32_t most_in_batch = 0;
  int64_t memory_bytes = 0;  // by StageCode::add_memory; 0 if unknown
  std::vector<FallbackEvent> fallbacks = {};
};
CodePorts ports_of_code(const StageCode& code);
void put_ports(WireWriter& writer, const CodePorts& ports);
CodePorts take_ports(WireReader& reader);

}  // namespace headrace::executors::pipeline::isolation
