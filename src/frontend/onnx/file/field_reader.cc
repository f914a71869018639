#include "frontend/onnx/file/field_reader.h"

#include "base/error.h"
#include "base/utf8.h"

namespace headrace::onnx {

using protozero::pbf_wire_type;

namespace {

std::string_view wire_type_name(pbf_wire_type type) {
  switch (type) {
    case pbf_wire_type::varint:
      return "an integer";
    case pbf_wire_type::fixed64:
      return "a 64-bit value";
    case pbf_wire_type::length_delimited:
      return "bytes";
    case pbf_wire_type::fixed32:
      return "a 32-bit value";
    case pbf_wire_type::unknown:
      break;
  }
  return "nothing";
}

std::string place_part(const Place& place) {
  std::string text(place.what);
  if (place.index >= 0) text += fmt::format(" {}", place.index);
  if (place.name && !place.name->empty()) text += " " + printable(*place.name);
  return text;
}

}  // namespace

std::string Place::text() const {
  std::string text = place_part(*this);
  for (const Place* place = parent; place; place = place->parent) text = place_part(*place) + ", " + text;
  return text;
}

void FieldReader::fail(const std::string& message) const {
  auto offset = reader_.data().data() - source_.begin;
  throw UserError(fmt::format("malformed ONNX data: {}", message),
                  {.op = {}, .place = fmt::format("{}: {} (near byte {})", source_.name, place_.text(), offset)});
}

void FieldReader::expect(pbf_wire_type type) const {
  if (!reader_.has_wire_type(type)) {
    fail(fmt::format("field {} holds {} where {} belongs", field_, wire_type_name(reader_.wire_type()),
                     wire_type_name(type)));
  }
}

template <typename Function>
auto FieldReader::guarded(Function&& function) {
  try {
    return function();
  } catch (const protozero::end_of_buffer_exception&) {
    fail(fmt::format("field {} reaches past the end of its message (is the file truncated?)", field_));
  } catch (const protozero::exception&) {
    fail("this is not a valid protobuf field");
  }
}

bool FieldReader::next() {
  bool more = guarded([&] { return reader_.next(); });
  field_ = more ? reader_.tag() : 0;
  return more;
}

int64_t FieldReader::read_int() {
  expect(pbf_wire_type::varint);
  return guarded([&] { return reader_.get_int64(); });
}

int32_t FieldReader::read_int32() {
  int64_t value = read_int();
  if (value != static_cast<int32_t>(value)) fail(fmt::format("field {} is {}, out of range", field_, value));
  return static_cast<int32_t>(value);
}

float FieldReader::read_float() {
  expect(pbf_wire_type::fixed32);
  return guarded([&] { return reader_.get_float(); });
}

std::string_view FieldReader::read_bytes() {
  expect(pbf_wire_type::length_delimited);
  return guarded([&] {
    protozero::data_view view = reader_.get_view();
    return std::string_view(view.data(), view.size());
  });
}

std::string_view FieldReader::read_text() {
  const std::string_view text = read_bytes();
  if (!is_utf8(text)) fail(fmt::format("the text {} is not UTF-8", printable(text)));
  return text;
}

void FieldReader::read_ints(std::vector<int64_t>& values) {
  if (reader_.has_wire_type(pbf_wire_type::varint)) return values.push_back(read_int());
  expect(pbf_wire_type::length_delimited);
  guarded([&] {
    for (int64_t value : reader_.get_packed_int64()) values.push_back(value);
  });
}

void FieldReader::read_floats(std::vector<float>& values) {
  if (reader_.has_wire_type(pbf_wire_type::fixed32)) return values.push_back(read_float());
  expect(pbf_wire_type::length_delimited);
  guarded([&] {
    for (float value : reader_.get_packed_float()) values.push_back(value);
  });
}

void FieldReader::skip() {
  guarded([&] { reader_.skip(); });
}

}  // namespace headrace::onnx
