#include "tools/headrace/tensors.h"

#include <cmath>

#include "tools/headrace/options.h"
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

// SplitMix64: a small generator whose numbers are the same everywhere.
uint64_t next(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

double next_unit(uint64_t& state) { return static_cast<double>(next(state) >> 11) * 0x1p-53; }

}  // namespace

NDArray read_tensor(const std::filesystem::path& npy) {
  const auto array = std::make_shared<NpyArray>(read_npy(npy));
  return NDArray::view(array->bytes.data(), array->shape, dtype_of(*array, npy.string()), [array] {});
}

void write_tensor(const std::filesystem::path& npy, const NDArray& tensor) {
  const NDArray dense = tensor.to_dense();
  const auto bytes = dense.bytes();
  write_npy(npy, {kind_of(dense.dtype()),
                  static_cast<int64_t>(dense.dtype().bytes()),
                  dense.shape(),
                  {bytes.begin(), bytes.end()}});
}

NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit) {
  NDArray tensor = NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
  uint64_t state = seed;
  const auto count = static_cast<uint64_t>(spec.dtype.is_bool() ? 2 : limit);
  for (const char c : spec.name) state = state * 131 + static_cast<unsigned char>(c);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (spec.dtype.is_float()) {
      // Box and Muller's transform.
      const double radius = std::sqrt(-2 * std::log(1 - next_unit(state)));
      set_element(tensor.tensor(), i, radius * std::cos(6.283185307179586 * next_unit(state)));
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
      known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", spec.name, describe(spec));
    throw_user_error("--input: the program has no input '{}'; it has {}", name, known.empty() ? "none" : known);
  }
  std::vector<NDArray> inputs;
  for (const artifact::TensorSpec& spec : specs) {
    const auto it = given.find(spec.name);
    if (it == given.end())
      throw_user_error("input '{}' ({}) is missing: give it as --input {}=FILE.npy", spec.name, describe(spec),
                       spec.name);
    artifact::TensorSpec found = spec;
    found.dtype = it->second.dtype();
    found.shape.assign(it->second.shape().begin(), it->second.shape().end());
    if (found.dtype != spec.dtype || found.shape != spec.shape) {
      throw_user_error("input '{}' must be {}, the file has {}: {}", spec.name, describe(spec), describe(found),
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
