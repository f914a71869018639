#include "tools/headrace/tensors.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/write_all.h"
#include "driver/output_file.h"
#include "tools/headrace/options.h"
#include "tools/headrace/shown_text.h"
#include "tools/npy.h"

namespace headrace::tools {

namespace {

DataType dtype_of(const NpyArray& array, const std::string& path) {
  const int bits = static_cast<int>(array.item_bytes) * 8;
  switch (array.kind) {
    case 'f':
      return DataType::float_(bits);
    case 'i':
      return DataType::int_(bits);
    case 'u':
      return DataType::uint(bits);
    case 'b':
      return DataType::bool_();
    case 'V':
      if (bits == 16) return DataType::bfloat16();
      break;
    default:
      break;
  }
  throw_user_error("'{}' holds elements that no tensor has (numpy kind '{}', {} bytes)", path, array.kind,
                   array.item_bytes);
}

char kind_of(DataType dtype) {
  if (dtype.is_bfloat16()) return 'V';
  if (dtype.is_float()) return 'f';
  if (dtype.is_bool()) return 'b';
  return dtype.is_int() ? 'i' : 'u';
}

NpyArray to_npy(const NDArray& tensor) {
  const NDArray dense = tensor.to_dense();
  const auto bytes = dense.bytes();
  return {
      kind_of(dense.dtype()), static_cast<int64_t>(dense.dtype().bytes()), dense.shape(), {bytes.begin(), bytes.end()}};
}

// SplitMix64: a small generator whose numbers are the same everywhere.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// About normal, of mean 0 and deviation 1: the sum of twelve uniform numbers. Whole numbers are added, and one exact
// multiplication follows, so that no machine's mathematics library has a say.
double next_normal(uint64_t& state) {
  constexpr int64_t kMiddle = int64_t{6} << 32;
  int64_t sum = 0;
  for (int i = 0; i < 6; ++i) {
    const uint64_t two = next(state);
    sum += static_cast<int64_t>((two >> 32) + (two & 0xffffffffu));
  }
  return static_cast<double>(sum - kMiddle) * 0x1p-32;
}

}  // namespace

NDArray read_tensor(const std::filesystem::path& npy) {
  const auto array = std::make_shared<NpyArray>(read_npy(npy));
  return NDArray::view(array->bytes.data(), array->shape, dtype_of(*array, npy.string()), [array] {});
}

void write_tensor(const std::filesystem::path& npy, const NDArray& tensor) { write_npy(npy, to_npy(tensor)); }

void write_tensors(const std::vector<std::string>& files, const std::vector<NDArray>& tensors) {
  std::vector<std::unique_ptr<driver::OutputFile>> written;
  for (size_t i = 0; i < files.size(); ++i) {
    const driver::OutputFile& file = *written.emplace_back(std::make_unique<driver::OutputFile>(files[i]));
    if (!write_all(file.descriptor(), encode_npy(to_npy(tensors[i]))))
      throw_user_error("cannot write '{}': {}; make room there or name another folder (no output was written)",
                       files[i], std::strerror(errno));
  }
  for (const auto& file : written) file->commit();
}

NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit) {
  NDArray tensor = NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
  uint64_t state = seed;
  const auto count = static_cast<uint64_t>(spec.dtype.is_bool() ? 2 : limit);
  for (const char c : spec.name) state = state * 131 + static_cast<unsigned char>(c);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (spec.dtype.is_float()) {
      set_element(tensor.tensor(), i, next_normal(state));
    } else {
      set_element_int(tensor.tensor(), i, static_cast<int64_t>(next(state) % count));
    }
  }
  return tensor;
}

std::map<std::string, NDArray> read_named(const std::vector<std::string>& assignments) {
  std::map<std::string, NDArray> given;
  for (const std::string& text : assignments) {
    const auto [name, file] = split_assignment("--input", text);
    if (!given.emplace(name, read_tensor(file)).second)
      throw UsageError(fmt::format("--input: '{}' is given twice", name));
  }
  return given;
}

std::vector<std::string> files_of(const std::string& option, const std::vector<std::string>& assignments) {
  std::vector<std::string> files;
  for (const std::string& text : assignments) files.push_back(split_assignment(option, text).second);
  return files;
}

std::vector<NDArray> in_order(const std::vector<artifact::TensorSpec>& specs,
                              const std::map<std::string, NDArray>& given) {
  for (const auto& [name, tensor] : given) {
    const auto is_it = [&](const artifact::TensorSpec& spec) { return spec.name == name; };
    if (std::any_of(specs.begin(), specs.end(), is_it)) continue;
    std::string known;
    for (const auto& spec : specs)
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", shown(spec.name), describe(spec));
    throw_user_error("--input: the program has no input '{}'; it has {}", shown(name), known.empty() ? "none" : known);
  }
  std::vector<NDArray> inputs;
  for (const artifact::TensorSpec& spec : specs) {
    const auto it = given.find(spec.name);
    if (it == given.end())
      throw_user_error("input '{}' ({}) is missing: give it as --input {}=FILE.npy", shown(spec.name), describe(spec),
                       shown(spec.name));
    artifact::TensorSpec found = spec;
    found.dtype = it->second.dtype();
    found.shape.assign(it->second.shape().begin(), it->second.shape().end());
    if (found.dtype != spec.dtype || found.shape != spec.shape) {
      throw_user_error("input '{}' must be {}, the file has {}: {}", shown(spec.name), describe(spec), describe(found),
                       found.dtype != spec.dtype ? "convert it" : "give another, or compile the model for this shape");
    }
    inputs.push_back(it->second);
  }
  return inputs;
}

std::string file_name_of(const std::string& tensor_name) {
  std::string name = tensor_name;
  for (char& c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    if (!plain) c = '_';
  }
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

std::string describe(const artifact::TensorSpec& spec) {
  if (spec.shape.empty()) return spec.dtype.to_string() + " scalar";
  return fmt::format("{} {}", spec.dtype.to_string(), fmt::join(spec.shape, "x"));
}

}  // namespace headrace::tools
