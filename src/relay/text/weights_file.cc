#include "relay/text/weights_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "artifact/safetensors.h"
#include "base/error.h"
#include "base/json_fault.h"
#include "base/mapped_file.h"
#include "base/write_all.h"

namespace headrace::relay {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPrefix = "relay.Constant.";
constexpr size_t kLengthBytes = artifact::kSafetensorsLengthBytes;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the format's own limit
constexpr int kMaxDepth = 3;                       // header > tensor > shape

std::string_view type_name(DataType dtype, const std::string& path) {
  const std::string_view name = artifact::safetensors_name(dtype);
  if (name.empty())
    throw_user_error("'{}' cannot hold {}: safetensors has no such dtype; print the program without a weights file",
                     path, dtype);
  return name;
}

void write_bytes(int descriptor, const std::string& path, std::span<const std::byte> bytes) {
  if (!write_all(descriptor, bytes)) throw_user_error("cannot write '{}': {}", path, std::strerror(errno));
}

// ---- reading

// One file: throws UserErrors that name it.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(MappedFile::open(path, "weights file")) {}

  std::vector<NDArray> read() {
    const Json header = read_header();
    std::vector<NDArray> weights(header.size() - (header.contains("__metadata__") ? 1 : 0));
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const size_t index = index_of(name, weights.size());
      if (weights[index]) fail("'{}' is there twice", name);
      weights[index] = read_tensor(name, entry);
    }
    check_places();
    return weights;
  }

 private:
  struct Place {
    uint64_t begin = 0, end = 0;
  };

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw_user_error("'{}' is not a weights file (safetensors) of a Relay text: {}", path_,
                     fmt::format(text, std::forward<Args>(args)...));
  }

  Json read_header() {
    const auto bytes = file_->bytes();
    if (bytes.size() < kLengthBytes) fail("it has {} bytes", bytes.size());
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), kLengthBytes);  // little-endian, as all we run on
    if (length > kMaxHeaderBytes || length > bytes.size() - kLengthBytes)
      fail("its header would have {} bytes, the file has {}; it is truncated or of another kind", length, bytes.size());
    const auto text = bytes.subspan(kLengthBytes, static_cast<size_t>(length));
    data_ = bytes.subspan(kLengthBytes + static_cast<size_t>(length));
    const auto* first = reinterpret_cast<const char*>(text.data());
    bool is_deep = false;
    const auto check_depth = [&](int depth, nlohmann::detail::parse_event_t, Json&) {
      is_deep = is_deep || depth > kMaxDepth;
      return depth <= kMaxDepth;
    };
    try {
      Json header = Json::parse(first, first + text.size(), check_depth);
      if (is_deep || !header.is_object()) fail("its header is not a list of tensors");
      return header;
    } catch (const Json::exception& error) {
      fail("its header cannot be read: {}", json_fault(error));
    }
  }

  // Names are relay.Constant.0 to relay.Constant.count-1, in any order.
  size_t index_of(const std::string& name, size_t count) const {
    size_t index = 0;
    const char* end = name.data() + name.size();
    const char* digits = name.starts_with(kPrefix) ? name.data() + kPrefix.size() : end;
    const auto [stop, error] = std::from_chars(digits, end, index);
    const bool is_plain = error == std::errc() && stop == end && (*digits != '0' || digits + 1 == end);
    if (!is_plain) fail("tensor '{}' is not called {}0, {}1 ...", name, kPrefix, kPrefix);
    if (index >= count) fail("it holds {} tensors, one of them is '{}': others are missing", count, name);
    return index;
  }

  std::vector<uint64_t> numbers(const std::string& name, const Json& entry, const char* key) const {
    if (!entry.is_object() || !entry.contains(key) || !entry.at(key).is_array()) fail("'{}' has no {}", name, key);
    std::vector<uint64_t> values;
    for (const Json& item : entry.at(key)) {
      if (!item.is_number_unsigned()) fail("the {} of '{}' hold something else than counts", key, name);
      values.push_back(item.get<uint64_t>());
    }
    return values;
  }

  NDArray read_tensor(const std::string& name, const Json& entry) {
    Shape shape;
    for (const uint64_t dim : numbers(name, entry, "shape"))
      shape.push_back(static_cast<int64_t>(std::min<uint64_t>(dim, INT64_MAX)));
    const std::string type = entry.contains("dtype") && entry.at("dtype").is_string() ? entry.at("dtype") : "none";
    const std::optional<DataType> dtype = artifact::safetensors_dtype(type);
    if (!dtype) fail("'{}' has the dtype {}, which is not known here", name, type);
    const std::vector<uint64_t> offsets = numbers(name, entry, "data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1]) fail("the data_offsets of '{}' are not a begin and end", name);
    if (offsets[1] > data_.size())
      fail("'{}' would end at byte {} of the data, which has {}; the file is truncated", name, offsets[1],
           data_.size());
    const Place place = places_.emplace_back(Place{offsets[0], offsets[1]});
    check_size(name, shape, *dtype, place.end - place.begin);
    return view(shape, *dtype, place);
  }

  void check_size(const std::string& name, const Shape& shape, DataType dtype, uint64_t nbytes) const {
    uint64_t elements = 0;
    try {
      elements = static_cast<uint64_t>(num_elements(shape));
    } catch (const UserError& error) {
      fail("the shape of '{}': {}", name, error.message());
    }
    if (nbytes / dtype.bytes() != elements || nbytes % dtype.bytes() != 0)
      fail("'{}' is {} of shape ({}), but has {} bytes", name, dtype, fmt::join(shape, ", "), nbytes);
  }

  NDArray view(const Shape& shape, DataType dtype, const Place& place) const {
    const auto bytes = data_.subspan(static_cast<size_t>(place.begin), static_cast<size_t>(place.end - place.begin));
    if (bytes.empty() || reinterpret_cast<uintptr_t>(bytes.data()) % dtype.bytes() != 0)
      return NDArray::from_bytes(shape, dtype, bytes);
    NDArray tensor = NDArray::view(const_cast<std::byte*>(bytes.data()), shape, dtype, [kept = file_] {});
    tensor.object()->read_only = true;
    return tensor;
  }

  // Checks that the tensors fill the data without holes and without sharing, as the format requires.
  void check_places() {
    std::sort(places_.begin(), places_.end(),
              [](const Place& a, const Place& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
    uint64_t end = 0;
    for (const Place& place : places_) {
      if (place.begin != end) fail("byte {} of the data belongs to no tensor, or to two", std::min(place.begin, end));
      end = place.end;
    }
    if (end != data_.size()) fail("it has {} bytes after its last tensor", data_.size() - end);
  }

  std::string path_;
  std::shared_ptr<const MappedFile> file_;
  std::span<const std::byte> data_;
  std::vector<Place> places_;
};

}  // namespace

void write_weights(int descriptor, const std::string& path, const std::vector<NDArray>& weights) {
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return weights[a].dtype().bytes() > weights[b].dtype().bytes(); });
  std::vector<artifact::SafetensorsRow> rows;
  for (const size_t i : order) {
    const Shape& shape = weights[i].shape();
    rows.push_back({.name = fmt::format("{}{}", kPrefix, i),
                    .dtype = type_name(weights[i].dtype(), path),
                    .shape = {shape.begin(), shape.end()},
                    .nbytes = weights[i].size_bytes()});
  }
  const std::string head = artifact::safetensors_head(rows, "headrace.relay");
  write_bytes(descriptor, path, std::as_bytes(std::span(head)));
  for (const size_t i : order) write_bytes(descriptor, path, weights[i].to_dense().bytes());
}

std::vector<NDArray> read_weights(const std::string& path) { return Reader(path).read(); }

}  // namespace headrace::relay
