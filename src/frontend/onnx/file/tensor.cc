#include "frontend/onnx/file/tensor.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <protozero/pbf_reader.hpp>
#include <tuple>

#include "base/error.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/file/model_file.h"
#include "tensor/ndarray.h"

namespace headrace::onnx {

using protozero::pbf_wire_type;

namespace {

constexpr std::string_view kExternalFile = "external data file";

// TensorProto's typed fields, and how the elements of a dtype lie in theirs.
enum class Encoding { kFixed32, kFixed64, kVarint };

struct TypedField {
  uint32_t number;
  Encoding encoding;
  int64_t values_per_element = 1;
};

TypedField typed_field(ElementType type) {
  switch (type) {
    case ElementType::kFloat:
      return {4, Encoding::kFixed32};
    case ElementType::kComplex64:
      return {4, Encoding::kFixed32, 2};
    case ElementType::kDouble:
      return {10, Encoding::kFixed64};
    case ElementType::kComplex128:
      return {10, Encoding::kFixed64, 2};
    case ElementType::kInt64:
      return {7, Encoding::kVarint};
    case ElementType::kUint32:
    case ElementType::kUint64:
      return {11, Encoding::kVarint};
    default:
      return {5, Encoding::kVarint};
  }
}

pbf_wire_type wire_type(Encoding encoding) {
  switch (encoding) {
    case Encoding::kFixed32:
      return pbf_wire_type::fixed32;
    case Encoding::kFixed64:
      return pbf_wire_type::fixed64;
    case Encoding::kVarint:
      break;
  }
  return pbf_wire_type::varint;
}

[[noreturn]] void fail(const TensorProto& tensor, const std::string& source, const std::string& message) {
  throw UserError(fmt::format("tensor {}: {}", printable(tensor.name), message), {.op = {}, .place = source});
}

// The product of dims, refused when the size in bytes would not fit in 63 bits.
int64_t checked_element_count(const TensorProto& tensor, const std::string& source) {
  if (std::find(tensor.dims.begin(), tensor.dims.end(), 0) != tensor.dims.end()) return 0;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 16;  // 16 bytes: the widest element
  int64_t count = 1;
  for (int64_t dim : tensor.dims) {
    if (count > kMost / dim)
      fail(tensor, source, fmt::format("its dims {} are too large", fmt::join(tensor.dims, "x")));
    count *= dim;
  }
  return count;
}

// A typed field as the pieces it is stored in: one for a packed field, one a value for an unpacked one.
std::vector<std::string_view> find_pieces(const TensorProto& tensor, const TypedField& field,
                                          const std::string& source) {
  std::vector<std::string_view> pieces;
  protozero::pbf_reader reader(tensor.message.data(), tensor.message.size());
  while (reader.next()) {
    if (reader.tag() != field.number) {
      reader.skip();
    } else if (reader.wire_type() == pbf_wire_type::length_delimited) {
      protozero::data_view view = reader.get_view();
      pieces.emplace_back(view.data(), view.size());
    } else if (reader.wire_type() == wire_type(field.encoding)) {
      const char* begin = reader.data().data();
      reader.skip();
      pieces.emplace_back(begin, static_cast<size_t>(reader.data().data() - begin));
    } else {
      fail(tensor, source, fmt::format("its field {} has the wrong wire type", field.number));
    }
  }
  return pieces;
}

int64_t count_values(const std::vector<std::string_view>& pieces, Encoding encoding) {
  int64_t count = 0;
  for (std::string_view piece : pieces) {
    switch (encoding) {
      case Encoding::kFixed32:
        count += std::ssize(piece) / 4;
        break;
      case Encoding::kFixed64:
        count += std::ssize(piece) / 8;
        break;
      case Encoding::kVarint:  // the last byte of each has its high bit clear
        count += std::count_if(piece.begin(), piece.end(), [](char c) { return (c & 0x80) == 0; });
    }
  }
  return count;
}

// Returns whether an element holds a value of its field. Floats of 16 and 8 bits are stored as their bits, and elements
// below 8 bits as bytes that hold several, by some writers with the sign of an int16 or int8.
bool holds(ElementType type, int64_t value) {
  switch (type) {
    case ElementType::kInt8:
      return value >= INT8_MIN && value <= INT8_MAX;
    case ElementType::kUint8:
      return value >= 0 && value <= UINT8_MAX;
    case ElementType::kInt16:
      return value >= INT16_MIN && value <= INT16_MAX;
    case ElementType::kUint16:
      return value >= 0 && value <= UINT16_MAX;
    case ElementType::kFloat8E4M3Fn:
    case ElementType::kFloat8E4M3Fnuz:
    case ElementType::kFloat8E5M2:
    case ElementType::kFloat8E5M2Fnuz:
    case ElementType::kUint4:
    case ElementType::kInt4:
    case ElementType::kFloat4E2M1:
    case ElementType::kUint2:
    case ElementType::kInt2:
      return value >= INT8_MIN && value <= UINT8_MAX;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      return value >= INT16_MIN && value <= UINT16_MAX;
    case ElementType::kInt32:
      return value >= INT32_MIN && value <= INT32_MAX;
    case ElementType::kUint32:
      return value >= 0 && value <= UINT32_MAX;
    default:
      return true;
  }
}

void decode_varints(const TensorProto& tensor, const std::vector<std::string_view>& pieces, const std::string& source,
                    std::byte* dst) {
  const int64_t element_size = element_size_bytes(tensor.type);
  for (std::string_view piece : pieces) {
    const char* at = piece.data();
    const char* end = at + piece.size();
    while (at != end) {
      const uint64_t value = protozero::decode_varint(&at, end);
      if (!holds(tensor.type, static_cast<int64_t>(value)))
        fail(tensor, source,
             fmt::format("it holds {}, which is not a value of {}", static_cast<int64_t>(value),
                         element_type_name(tensor.type)));
      std::memcpy(dst, &value, static_cast<size_t>(element_size));  // little-endian: the low bytes come first
      dst += element_size;
    }
  }
}

// Copies bytes of a model, which lie in memory or in its file (null: they lie in memory).
void copy_bytes(std::string_view src, std::byte* dst, const ModelFile* file) {
  if (src.empty()) return;
  if (file != nullptr && file->is_apart(src)) return file->read(src, {dst, src.size()});
  std::memcpy(dst, src.data(), src.size());
}

// The elements from the typed field of the dtype. Sizes are checked against the bytes present before allocation.
std::vector<std::byte> decode_typed_field(const TensorProto& tensor, int64_t count, const std::string& source,
                                          const ModelFile* file) {
  TypedField field = typed_field(tensor.type);
  std::vector<std::string_view> pieces = find_pieces(tensor, field, source);
  int64_t found = count_values(pieces, field.encoding);
  const bool is_packed = stored_bits(tensor.type) < 8;
  int64_t wanted = is_packed ? stored_bytes(tensor.type, count) : count * field.values_per_element;
  if (found != wanted) {
    fail(tensor, source,
         fmt::format("its dims [{}] ask for {} {}, but it holds {}", fmt::join(tensor.dims, ", "), wanted,
                     is_packed ? fmt::format("values of {} elements", element_type_name(tensor.type))
                               : element_type_name(tensor.type) + " values",
                     found));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(stored_bytes(tensor.type, count)));
  if (field.encoding == Encoding::kVarint) {
    decode_varints(tensor, pieces, source, bytes.data());
    return bytes;
  }
  std::byte* dst = bytes.data();
  for (std::string_view piece : pieces) {
    if (piece.size() % (field.encoding == Encoding::kFixed32 ? 4 : 8) != 0) {
      fail(tensor, source, fmt::format("its field {} ends inside a value", field.number));
    }
    copy_bytes(piece, dst, file);
    dst += piece.size();
  }
  return bytes;
}

// Returns elements below 8 bits with a byte for each: integers extended to it, floats in its lowest bits.
std::vector<std::byte> unpacked(ElementType type, std::span<const std::byte> packed, int64_t count) {
  const auto bits = static_cast<size_t>(stored_bits(type)), per_byte = 8 / bits;
  const int past = 1 << bits;
  const bool is_signed = type == ElementType::kInt4 || type == ElementType::kInt2;
  std::vector<std::byte> bytes(static_cast<size_t>(count));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int value = (static_cast<int>(packed[i / per_byte]) >> (i % per_byte * bits)) & (past - 1);
    bytes[i] = static_cast<std::byte>(is_signed && value >= past / 2 ? value - past : value);
  }
  return bytes;
}

std::vector<std::string_view> decode_strings(const TensorProto& tensor, int64_t count, const std::string& source) {
  constexpr uint32_t kStringData = 6;
  std::vector<std::string_view> strings;
  protozero::pbf_reader reader(tensor.message.data(), tensor.message.size());
  while (reader.next()) {
    if (reader.tag() != kStringData) {
      reader.skip();
      continue;
    }
    if (reader.wire_type() != pbf_wire_type::length_delimited) {
      fail(tensor, source, fmt::format("its field {} has the wrong wire type", kStringData));
    }
    protozero::data_view view = reader.get_view();
    strings.emplace_back(view.data(), view.size());
  }
  if (std::ssize(strings) != count) {
    fail(tensor, source,
         fmt::format("its dims [{}] ask for {} strings, but it holds {}", fmt::join(tensor.dims, ", "), count,
                     strings.size()));
  }
  return strings;
}

// A bool stored as another byte than 0 or 1 would be undefined behaviour in whoever reads it.
void check_bools(const TensorProto& tensor, std::span<const std::byte> bytes, const std::string& source) {
  if (std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; })) {
    fail(tensor, source, "a bool element is neither 0 nor 1");
  }
}

int64_t parse_number(const TensorProto& tensor, const KeyValue& entry, const std::string& source) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(entry.value.data(), entry.value.data() + entry.value.size(), value);
  if (error != std::errc{} || end != entry.value.data() + entry.value.size() || value < 0) {
    fail(tensor, source,
         fmt::format("the {} of its external data is {}, not a number of bytes", entry.key, printable(entry.value)));
  }
  return value;
}

bool is_inside(const std::filesystem::path& location) {
  return location.is_relative() && std::find(location.begin(), location.end(), "..") == location.end();
}

// A rename changes the stamp too, but no content.
bool same_content(const FileStamp& a, const FileStamp& b) {
  return std::tie(a.device, a.inode, a.size_bytes, a.modified_ns) ==
         std::tie(b.device, b.inode, b.size_bytes, b.modified_ns);
}

void use_buffer(TensorData& data, std::vector<std::byte> buffer) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(buffer));
  data.bytes = *owner;
  data.owner = std::move(owner);
  data.is_copied = true;
}

// Gives a tensor memory of its own, aligned and not yet written.
std::span<std::byte> use_own_memory(TensorData& data, int64_t size_bytes) {
  const NDArray memory = NDArray::empty({size_bytes}, DataType::uint(8));
  data.bytes = memory.bytes();
  data.owner = std::make_shared<const NDArray>(memory);
  return {memory.data<std::byte>(), data.bytes.size()};
}

// Makes a place of a mapped file the data of a tensor. Bytes that are not aligned to the elements are copied.
void use_mapped(TensorData& data, std::span<const std::byte> stored, std::shared_ptr<const MappedFile> file) {
  const auto alignment = static_cast<uintptr_t>(element_size_bytes(data.type));
  if (reinterpret_cast<uintptr_t>(stored.data()) % alignment != 0)
    return use_buffer(data, std::vector<std::byte>(stored.begin(), stored.end()));
  data.bytes = stored;
  data.owner = std::move(file);
}

}  // namespace

int64_t TensorData::element_count() const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

std::string TensorSource::path_of(const std::string& location) const {
  return (std::filesystem::path(directory_) / location).string();
}

std::vector<std::string> TensorSource::external_files() const {
  std::vector<std::string> paths;
  for (const auto& [location, file] : external_files_) paths.push_back(path_of(location));
  return paths;
}

// Symbolic links may lead to other places below the folder of the model, or below the one that the model file really
// lies in when it is a link itself.
bool TensorSource::leaves_folder(const std::string& location) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path target = fs::canonical(path_of(location), error);
  if (error) return false;  // not there: opening it says so
  const auto holds_target = [&](const fs::path& folder) {
    return !error && std::mismatch(folder.begin(), folder.end(), target.begin(), target.end()).first == folder.end();
  };
  if (holds_target(fs::canonical(directory_, error))) return false;
  return file_ == nullptr || !holds_target(fs::canonical(name_, error).parent_path());
}

// A file that cannot be read has one message, which names the first tensor that needs it. Files are not kept open,
// because a model may have one for each tensor.
ReadableFile TensorSource::open_external(const TensorProto& tensor, const std::string& location) {
  if (!unreadable_.contains(location)) {
    try {
      return {path_of(location), kExternalFile};
    } catch (const UserError& error) {
      unreadable_[location] = fmt::format(
          "tensor {}: its data lies outside of the model file: {}; put the file there that came with the model, or "
          "save the model again with its data inside",
          printable(tensor.name), error.message());
    }
  }
  throw UserError(unreadable_.at(location), {.op = {}, .place = name_});
}

TensorSource::ExternalPlace TensorSource::find_external(const TensorProto& tensor, int64_t size_bytes) const {
  ExternalPlace place;
  int64_t length = -1;
  for (const KeyValue& entry : tensor.external_data) {
    if (entry.key == "location") place.location = entry.value;
    if (entry.key == "offset") place.offset = parse_number(tensor, entry, name_);
    if (entry.key == "length") length = parse_number(tensor, entry, name_);
  }
  const std::string& location = place.location;
  if (location.empty()) fail(tensor, name_, "its external data has no location");
  if (directory_.empty()) fail(tensor, name_, "it has external data, but there is no folder to look for it in");
  if (!is_inside(location) || location.find('\0') != std::string::npos) {
    fail(tensor, name_,
         fmt::format("its external data is at {}; only a path below the model's folder is allowed",
                     printable(location)));
  }
  if (length >= 0 && length != size_bytes) {
    fail(tensor, name_,
         fmt::format("its external data has {} bytes of '{}', its dims ask for {}", length, escaped(location),
                     size_bytes));
  }
  if (leaves_folder(location)) {
    fail(tensor, name_,
         fmt::format("its external data is at {}, a symbolic link that leads out of the model's folder; copy the file "
                     "to that place",
                     printable(location)));
  }
  return place;
}

void TensorSource::load_external(const TensorProto& tensor, int64_t size_bytes, TensorData& data) {
  const auto [location, offset] = find_external(tensor, size_bytes);
  const ReadableFile file = open_external(tensor, location);
  const auto available = static_cast<int64_t>(file.size_bytes());
  if (offset > available || size_bytes > available - offset) {
    fail(tensor, name_,
         fmt::format("its external data is bytes {} to {} of '{}', which has {}: that file is cut, or of another model",
                     offset, fmt::to_string(static_cast<uint64_t>(offset) + static_cast<uint64_t>(size_bytes)),
                     escaped(location), available));
  }
  ExternalFile& known = external_files_.try_emplace(location, ExternalFile{file.stamp(), nullptr}).first->second;
  if (!same_content(known.stamp, file.stamp())) file.fail_written();
  const auto begin = static_cast<size_t>(offset), size = static_cast<size_t>(size_bytes);
  if (file.size_bytes() <= MappedFile::kCopiedBytes) return file.read(use_own_memory(data, size_bytes), begin);
  if (known.mapped == nullptr) known.mapped = MappedFile::map(file.descriptor(), file.size_bytes());
  if (known.mapped == nullptr) file.fail();
  use_mapped(data, known.mapped->bytes().subspan(begin, size), known.mapped);
}

// Raw data in memory is copied: a view of it would keep the bytes of the whole model.
void TensorSource::load_raw(std::string_view raw, TensorData& data) const {
  data.is_copied = file_ == nullptr || !file_->is_apart(raw);
  copy_bytes(raw, use_own_memory(data, std::ssize(raw)).data(), file_.get());
}

TensorData TensorSource::load(const TensorProto& tensor) try {
  TensorData data{.type = tensor.type, .dims = tensor.dims, .bytes = {}, .strings = {}, .owner = nullptr};
  bool is_string = tensor.type == ElementType::kString;
  int64_t element_size = element_size_bytes(tensor.type);
  if (element_size == 0 && !is_string) {
    fail(tensor, name_, fmt::format("its element type is {}, which is not supported", element_type_name(tensor.type)));
  }
  int64_t count = checked_element_count(tensor, name_);
  const int64_t stored_size = is_string ? 0 : stored_bytes(tensor.type, count);
  if (is_string) {
    data.strings = decode_strings(tensor, count, name_);
  } else if (count == 0) {
    return data;
  } else if (tensor.is_external) {
    load_external(tensor, stored_size, data);
  } else if (tensor.raw_data) {
    if (std::ssize(*tensor.raw_data) != stored_size) {
      fail(tensor, name_,
           fmt::format("its dims [{}] ask for {} bytes of {}, but it holds {}", fmt::join(tensor.dims, ", "),
                       stored_size, element_type_name(tensor.type), tensor.raw_data->size()));
    }
    if (!find_pieces(tensor, typed_field(tensor.type), name_).empty())
      fail(tensor, name_, "its elements are there twice, as raw_data and in the field of its type");
    load_raw(*tensor.raw_data, data);
  } else {
    use_buffer(data, decode_typed_field(tensor, count, name_, file_.get()));
  }
  if (!is_string && stored_bits(tensor.type) < 8) use_buffer(data, unpacked(tensor.type, data.bytes, count));
  if (tensor.type == ElementType::kBool) check_bools(tensor, data.bytes, name_);
  return data;
} catch (const protozero::exception&) {
  fail(tensor, name_, "its data is not a valid protobuf field");
}

}  // namespace headrace::onnx
