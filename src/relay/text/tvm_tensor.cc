#include "relay/text/tvm_tensor.h"

namespace headrace::relay {

namespace {

constexpr uint64_t kTvmTensorMagic = 0xDD5E40F096B4A13F;
constexpr int32_t kMaxTvmRank = 64;

class TvmTensorBytes {
 public:
  explicit TvmTensorBytes(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  T take(std::string_view what) {
    T value;
    const std::span<const std::byte> bytes = take_bytes(sizeof(T), what);
    std::memcpy(&value, bytes.data(), sizeof(T));  // little-endian, as all we run on
    return value;
  }
  std::span<const std::byte> take_bytes(uint64_t size, std::string_view what) {
    if (size > rest_.size())
      throw_user_error("a tensor is cut off: {} takes {} bytes, and {} are left", what, size, rest_.size());
    const std::span<const std::byte> taken = rest_.first(static_cast<size_t>(size));
    rest_ = rest_.subspan(static_cast<size_t>(size));
    return taken;
  }
  size_t left() const { return rest_.size(); }

 private:
  std::span<const std::byte> rest_;
};

bool has_tvm_dtype(DLDataType dtype) {
  const auto is_bits = [&](std::initializer_list<int> known) {
    return std::find(known.begin(), known.end(), dtype.bits) != known.end();
  };
  if (dtype.lanes != 1) return false;
  switch (dtype.code) {
    case kDLInt:
      return is_bits({8, 16, 32, 64});
    case kDLUInt:  // one bit is a bool, before it had a code of its own
      return is_bits({1, 8, 16, 32, 64});
    case kDLFloat:
      return is_bits({16, 32, 64});
    case kDLBfloat:
      return is_bits({16});
    case kDLBool:
      return is_bits({8});
    default:
      return false;
  }
}

DataType take_tvm_dtype(TvmTensorBytes& bytes) {
  DLDataType dtype{};
  dtype.code = bytes.take<uint8_t>("its dtype");
  dtype.bits = bytes.take<uint8_t>("its dtype");
  dtype.lanes = bytes.take<uint16_t>("its dtype");
  if (!has_tvm_dtype(dtype))
    throw_user_error("there is no dtype here of DLPack's code {} with {} bits and {} lanes", dtype.code, dtype.bits,
                     dtype.lanes);
  return DataType(dtype);
}

}  // namespace

NDArray read_tvm_tensor(std::span<const std::byte> all) {
  TvmTensorBytes bytes(all);
  if (const auto magic = bytes.take<uint64_t>("its header"); magic != kTvmTensorMagic)
    throw_user_error("no tensor begins with the number 0x{:x}; one begins with 0x{:x}", magic, kTvmTensorMagic);
  bytes.take<uint64_t>("its header");  // reserved
  bytes.take<uint64_t>("its device");  // TVM copies to the CPU before it writes
  const auto rank = bytes.take<int32_t>("its rank");
  if (rank < 0 || rank > kMaxTvmRank) throw_user_error("a tensor has 0 to {} dimensions, got {}", kMaxTvmRank, rank);
  const DataType dtype = take_tvm_dtype(bytes);
  Shape shape;
  for (int32_t i = 0; i < rank; ++i) shape.push_back(bytes.take<int64_t>("its shape"));
  const auto size = bytes.take<uint64_t>("its size");
  const std::span<const std::byte> data = bytes.take_bytes(size, "its data");
  if (bytes.left() != 0) throw_user_error("{} bytes are left over behind a tensor", bytes.left());
  return NDArray::from_bytes(std::move(shape), dtype, data);
}

}  // namespace headrace::relay
