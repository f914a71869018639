// Reads and writes tensors as .npy files, and makes random inputs from a seed.
#pragma once

#include <filesystem>
#include <map>
#include <optional>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"
#include "tools/headrace/option_text.h"

namespace headrace::tools {

struct ImageOptions;

NDArray read_tensor(const std::filesystem::path& npy);
void write_tensor(const std::filesystem::path& npy, const NDArray& tensor);
// Writes all tensors to temporary files, and renames these only after all writes succeeded, so that no file is replaced
// if one cannot be written. Throws UserError.
void write_tensors(const std::vector<std::string>& files, const std::vector<NDArray>& tensors);

// Fills a tensor with random elements, which are the same for a seed on every machine: approximately normal numbers for
// floats, integers in [0, limit) for integers, true or false with equal probability for booleans. With a range, numbers
// are uniform in it; throws UserError if the dtype's numbers do not reach it.
inline constexpr int64_t kRandomLimit = 8;
NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit = kRandomLimit,
                      const std::optional<RandomRange>& range = {});

// Facts about the inputs that read_named() needs. With `specs`, "x=image.raw" (or .bin) is the elements of the input
// alone, little-endian and dense. With `images`, too, "x=photo.png" is an image (image_input.h).
struct NamedFiles {
  const std::vector<artifact::TensorSpec>* specs = nullptr;
  const ImageOptions* images = nullptr;
  std::string option = "--input";
};
// Reads the files of options such as --input: "x=image.npy", or all arrays of "inputs.npz". Returns the tensors by
// input name. Throws UsageError for an input that is given twice, UserError for a file that does not fit; with `specs`
// before its elements are read, which may take far more memory than the file.
std::map<std::string, NDArray> read_named(const std::vector<std::string>& assignments, const NamedFiles& files = {});
// Returns the types of the tensors that such options give, by input name, without reading their elements. Leaves out
// images and files of elements alone, which do not say their shape. Throws as read_named for files that cannot be read.
std::map<std::string, artifact::TensorSpec> specs_in_files(const std::vector<std::string>& assignments);
// Returns the file names in such options.
std::vector<std::string> files_of(const std::string& option, const std::vector<std::string>& assignments);

// Returns the given tensors in the order of `specs`. Throws UserError for a missing or unknown input, and for one of
// another dtype or shape.
std::vector<NDArray> in_order(const std::vector<artifact::TensorSpec>& specs,
                              const std::map<std::string, NDArray>& given);

// Makes a file name from a tensor's name: replaces characters that file names cannot contain with '_'.
std::string file_name_of(const std::string& tensor_name);

// "float32 1x3x224x224"
std::string describe(const artifact::TensorSpec& spec);
std::string describe(const NDArray& tensor);

}  // namespace headrace::tools
