// Reading the fields of one protobuf message, with errors that say where in the model they are.
#pragma once

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"

namespace headrace::onnx {

// The bytes being read; errors report offsets from `begin`.
struct Source {
  const char* begin;
  std::string_view name;
};

// The reader's place in the model: a chain of message names that lives on the stack. `name` points to the view that the
// reader sets when it reads the message's name.
struct Place {
  const Place* parent = nullptr;
  std::string_view what;
  int64_t index = -1;
  const std::string_view* name = nullptr;

  std::string text() const;
};

// Every getter checks the wire type and the bounds and throws UserError; nothing is allocated beyond the bytes
// present. Fields that the caller does not know are passed over by skip().
class FieldReader {
 public:
  FieldReader(const Source& source, std::string_view message, const Place& place)
      : source_(source), place_(place), reader_(message.data(), message.size()) {}

  // Moves to the next field; false at the end of the message.
  bool next();
  // The number of the current field. Each getter below consumes that field.
  uint32_t field() const { return field_; }
  // Where the next field begins. The current one ends there once it is consumed.
  const char* position() const { return reader_.data().data(); }

  int64_t read_int();
  int32_t read_int32();
  float read_float();
  std::string_view read_bytes();
  // As read_bytes; the standard's strings are UTF-8.
  std::string_view read_text();
  // A repeated field, packed or not: appends one or many values.
  void read_ints(std::vector<int64_t>& values);
  void read_floats(std::vector<float>& values);
  void skip();

  [[noreturn]] void fail(const std::string& message) const;

 private:
  void expect(protozero::pbf_wire_type type) const;
  template <typename Function>
  auto guarded(Function&& function);

  const Source& source_;
  const Place& place_;
  protozero::pbf_reader reader_;
  uint32_t field_ = 0;
};

}  // namespace headrace::onnx
