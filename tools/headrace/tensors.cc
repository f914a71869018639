#include "tools/headrace/tensors.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/mapped_file.h"
#include "base/write_all.h"
#include "driver/output_file.h"
#include "tools/headrace/image_input.h"
#include "tools/headrace/options.h"
#include "tools/headrace/shown_text.h"
#include "tools/npz.h"

namespace headrace::tools {

namespace {

// `array` is an NpyArray or an NpyHeader.
DataType dtype_of(const auto& array, const std::string& path) {
  const int bits = static_cast<int>(array.item_bytes) * 8;
  switch (array.kind) {
    case 'f':
      // That of a narrow float, which its kind does not say, as bytes.
      return bits == 8 ? DataType::uint(8) : DataType::float_(bits);
    case 'i':
      return DataType::int_(bits);
    case 'u':
      return DataType::uint(bits);
    case 'b':
      return DataType::bool_();
    case 'V':
      if (bits == 16) return DataType::bfloat16();
      if (bits == 8) return DataType::uint(8);  // a narrow dtype
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

// Exact arithmetic for ranges of moderate numbers, as in next_normal.
double next_uniform(uint64_t& state, const RandomRange& range) {
  const double part = static_cast<double>(next(state) >> 11) * 0x1p-53;
  return range.low + (range.high - range.low) * part;
}

NDArray to_tensor(NpyArray from, const std::string& source) {
  const auto array = std::make_shared<NpyArray>(std::move(from));
  return NDArray::view(array->bytes.data(), array->shape, dtype_of(*array, source), [array] {});
}

[[noreturn]] void refuse(const RandomRange& range, const artifact::TensorSpec& spec) {
  throw_user_error("--range: {},{} is not a range of {}, the dtype of input '{}'; give another, or a file", range.low,
                   range.high, spec.dtype.to_string(), shown(spec.name));
}

struct Integers {
  int64_t least, most;
};

Integers integers_of(const RandomRange& range, const artifact::TensorSpec& spec) {
  const int bits = spec.dtype.bits() - (spec.dtype.is_int() ? 1 : 0);
  const double most = std::ldexp(1.0, std::min(bits, 62)), least = spec.dtype.is_int() ? -most : 0;
  const double low = std::ceil(range.low), high = std::floor(range.high);
  if (low > high || low < least || high >= most) refuse(range, spec);
  return {static_cast<int64_t>(low), static_cast<int64_t>(high)};
}

void check_floats(const RandomRange& range, const artifact::TensorSpec& spec) {
  NDArray ends = NDArray::empty({2}, spec.dtype);
  set_element(ends.tensor(), 0, range.low);
  set_element(ends.tensor(), 1, range.high);
  for (const int64_t i : {0, 1}) {
    if (!std::isfinite(element_as_double(ends.tensor(), i))) refuse(range, spec);
  }
}

// The bytes of an input's elements, and nothing else.
NDArray read_raw(const std::string& file, const artifact::TensorSpec& spec) {
  const auto mapped = MappedFile::open(file, "input file");
  const std::span<const std::byte> bytes = mapped->bytes();
  NDArray tensor = NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
  if (bytes.size() != tensor.size_bytes())
    throw_user_error("'{}' has {} bytes, but input '{}' ({}) has {}", file, bytes.size(), shown(spec.name),
                     describe(spec), tensor.size_bytes());
  if (spec.dtype.is_bool() && std::any_of(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; }))
    throw_user_error("'{}' has a bool that is neither 0 nor 1, for input '{}'", file, shown(spec.name));
  std::copy(bytes.begin(), bytes.end(), tensor.data<std::byte>());
  return tensor;
}

// Parses "x=image.npy".
std::pair<std::string, std::string> split_named(const std::string& option, const std::string& text) {
  if (text.find('=') == std::string::npos && text.find('.') != std::string::npos)
    throw UsageError(fmt::format("{}: say whose values '{}' holds: {} NAME={}", option, text, option, text));
  return split_assignment(option, text);
}

// Returns whether the value of --input is an archive, whose arrays have names.
bool is_archive(const std::string& text) { return text.ends_with(".npz") && text.find('=') == std::string::npos; }

bool is_raw(const std::string& file) { return file.ends_with(".raw") || file.ends_with(".bin"); }

artifact::TensorSpec spec_of(const std::string& name, const NpyHeader& header, const std::string& file) {
  return {.name = name, .dtype = dtype_of(header, file), .shape = header.shape};
}

// Returns the types of all arrays of an archive, in its order, without reading their elements.
std::vector<artifact::TensorSpec> specs_in_archive(const std::string& file) {
  std::vector<artifact::TensorSpec> specs;
  read_npz(file, [&](const std::string& name, const NpyHeader& header) {
    specs.push_back(spec_of(name, header, file));
    return false;
  });
  return specs;
}

// Returns the array of that name, or the only one.
artifact::TensorSpec find_in_archive(const std::string& name, const std::string& file) {
  const std::vector<artifact::TensorSpec> specs = specs_in_archive(file);
  const auto it = std::ranges::find(specs, name, &artifact::TensorSpec::name);
  if (it != specs.end()) return *it;
  if (specs.size() != 1) throw_user_error("'{}' has several arrays, and none is named '{}'", file, shown(name));
  return specs[0];
}

// Returns the dtype as Python writes it.
std::string numpy_name(DataType dtype) {
  return dtype.is_narrow() ? fmt::format("ml_dtypes.{}", dtype) : fmt::format("'{}'", dtype);
}

bool is_byte(DataType dtype) { return dtype == DataType::uint(8) || dtype == DataType::int_(8); }

// Returns a tensor of bytes as one of the narrow dtype that the program takes; others as they are. A .npy file does not
// say which narrow dtype its bytes have.
NDArray with_dtype_of(const artifact::TensorSpec& spec, const NDArray& given) {
  if (!spec.dtype.is_narrow() || !is_byte(given.dtype())) return given;
  return NDArray::view(given.data<void>(), given.shape(), spec.dtype, [given] {});
}

// Throws UserError unless a tensor may be the input. The bytes of a file may be those of a narrow dtype.
void check_fits(const artifact::TensorSpec& spec, const artifact::TensorSpec& found) {
  const bool has_shape = found.shape == spec.shape;
  const bool is_narrow = spec.dtype.is_narrow() && is_byte(found.dtype);
  if (has_shape && (is_narrow || found.dtype == spec.dtype)) return;
  throw_user_error("input '{}' must be {}, the file has {}: {}", shown(spec.name), describe(spec), describe(found),
                   !has_shape ? "give another, or compile the model for this shape"
                              : fmt::format("convert it, in numpy by x.astype({})", numpy_name(spec.dtype)));
}

// Throws UserError if the array of a file cannot be the input of that name, before its elements are read. in_order
// reports an unknown name.
void check_header(const std::string& name, const NpyHeader& header, const std::string& file, const NamedFiles& files) {
  if (files.specs == nullptr) return;
  const auto spec = std::ranges::find(*files.specs, name, &artifact::TensorSpec::name);
  if (spec != files.specs->end()) check_fits(*spec, spec_of(name, header, file));
}

NDArray read_from_archive(const std::string& name, const std::string& file, const NamedFiles& files) {
  const std::string member = find_in_archive(name, file).name;
  auto arrays = read_npz(file, [&](const std::string& one, const NpyHeader& header) {
    if (one == member) check_header(name, header, file, files);
    return one == member;
  });
  return to_tensor(std::move(arrays.at(0).second), file);
}

// Throws UserError if an archive holds an array that is not an input.
void check_is_input(const std::string& name, const std::string& file, const std::vector<artifact::TensorSpec>& specs) {
  std::vector<std::string> names;
  for (const artifact::TensorSpec& spec : specs) names.push_back(shown(spec.name));
  if (std::any_of(specs.begin(), specs.end(), [&](const artifact::TensorSpec& spec) { return spec.name == name; }))
    return;
  throw_user_error("'{}' holds '{}', which is not an input; the program has {}", file, shown(name),
                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

// Returns whether a file is an image of a kind that is not read.
bool is_other_image(const std::string& file) {
  constexpr std::array<std::string_view, 5> kEndings{".gif", ".bmp", ".webp", ".tif", ".tiff"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return file.ends_with(ending); });
}

NDArray read_input(const std::string& name, const std::string& file, const NamedFiles& files) {
  if (file.ends_with(".npz")) return read_from_archive(name, file, files);
  const bool is_picture = is_image(file) && (files.images != nullptr || files.specs == nullptr);
  if (is_other_image(file))
    throw_user_error("'{}': of images, only PNG and JPEG are read (.png, .jpg, .jpeg); convert it", file);
  if (!is_raw(file) && !is_picture) {
    const AdmitArray admit = [&](const NpyHeader& header) { check_header(name, header, file, files); };
    return to_tensor(read_npy(file, admit), file);
  }
  if (files.specs == nullptr)
    throw_user_error("'{}' does not hold a tensor with its shape, which {} needs; give '{}' as a .npy file", file,
                     files.option, shown(name));
  for (const artifact::TensorSpec& spec : *files.specs) {
    if (spec.name == name) return is_picture ? read_image(file, spec, *files.images) : read_raw(file, spec);
  }
  return NDArray::empty({0}, DataType::float_(32));  // in_order reports the unknown name
}

}  // namespace

NDArray read_tensor(const std::filesystem::path& npy) { return to_tensor(read_npy(npy), npy.string()); }

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

NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit,
                      const std::optional<RandomRange>& range) {
  NDArray tensor = NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
  uint64_t state = seed;
  Integers integers{0, (spec.dtype.is_bool() ? 2 : limit) - 1};
  const bool is_real = spec.dtype.is_float() || spec.dtype.is_narrow_float();
  if (range && is_real) check_floats(*range, spec);
  if (range && !is_real && !spec.dtype.is_bool()) integers = integers_of(*range, spec);
  const auto count = static_cast<uint64_t>(integers.most - integers.least) + 1;
  for (const char c : spec.name) state = state * 131 + static_cast<unsigned char>(c);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (is_real) {
      set_element(tensor.tensor(), i, range ? next_uniform(state, *range) : next_normal(state));
    } else {
      set_element_int(tensor.tensor(), i, integers.least + static_cast<int64_t>(next(state) % count));
    }
  }
  return tensor;
}

std::map<std::string, NDArray> read_named(const std::vector<std::string>& assignments, const NamedFiles& files) {
  const std::string& option = files.option;
  std::map<std::string, NDArray> given;
  const auto add = [&](const std::string& name, NDArray tensor) {
    if (!given.emplace(name, std::move(tensor)).second)
      throw UsageError(fmt::format("{}: '{}' is given twice", option, name));
  };
  for (const std::string& text : assignments) {
    if (is_archive(text)) {
      auto arrays = read_npz(text, [&](const std::string& name, const NpyHeader& header) {
        if (files.specs != nullptr) check_is_input(name, text, *files.specs);
        check_header(name, header, text, files);
        return true;
      });
      for (auto& [name, array] : arrays) add(name, to_tensor(std::move(array), text));
      continue;
    }
    const auto [name, file] = split_named(option, text);
    add(name, read_input(name, file, files));
  }
  return given;
}

std::map<std::string, artifact::TensorSpec> specs_in_files(const std::vector<std::string>& assignments) {
  std::map<std::string, artifact::TensorSpec> specs;
  for (const std::string& text : assignments) {
    if (is_archive(text)) {
      for (const artifact::TensorSpec& spec : specs_in_archive(text)) specs.emplace(spec.name, spec);
      continue;
    }
    const auto [name, file] = split_named("--input", text);
    if (file.ends_with(".npz")) {
      specs.emplace(name, find_in_archive(name, file));
    } else if (!is_raw(file) && !is_image(file) && !is_other_image(file)) {
      specs.emplace(name, spec_of(name, read_npy_header(file), file));
    }
  }
  return specs;
}

std::vector<std::string> files_of(const std::string& option, const std::vector<std::string>& assignments) {
  std::vector<std::string> files;
  for (const std::string& text : assignments)
    files.push_back(is_archive(text) ? text : split_named(option, text).second);
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
    const NDArray& found = it->second;
    check_fits(spec,
               {.name = spec.name, .dtype = found.dtype(), .shape = {found.shape().begin(), found.shape().end()}});
    inputs.push_back(with_dtype_of(spec, found));
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

std::string describe(const NDArray& tensor) {
  return describe(artifact::TensorSpec{
      .name = "", .dtype = tensor.dtype(), .shape = {tensor.shape().begin(), tensor.shape().end()}});
}

}  // namespace headrace::tools
