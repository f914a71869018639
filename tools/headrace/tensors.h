// Reads and writes tensors as .npy files, and makes random inputs from a seed.
#pragma once

#include <filesystem>
#include <map>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"

namespace headrace::tools {

NDArray read_tensor(const std::filesystem::path& npy);
void write_tensor(const std::filesystem::path& npy, const NDArray& tensor);
// Writes all tensors to temporary files, and renames these only after all writes succeeded, so that no file is replaced
// if one cannot be written. Throws UserError.
void write_tensors(const std::vector<std::string>& files, const std::vector<NDArray>& tensors);

// Fills a tensor with random elements, which are the same for a seed on every machine: approximately normal numbers for
// floats, integers in [0, limit) for integers, true or false with equal probability for booleans.
inline constexpr int64_t kRandomLimit = 8;
NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit = kRandomLimit);

// Reads the files of --input options ("x=image.npy"). Returns the tensors by input name. Throws UsageError for an input
// that is given twice.
std::map<std::string, NDArray> read_named(const std::vector<std::string>& assignments);
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

}  // namespace headrace::tools
