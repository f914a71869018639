// Tensors of the command line: .npy files in and out, and inputs made from a seed.
#pragma once

#include <filesystem>
#include <map>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"

namespace headrace::tools {

NDArray read_tensor(const std::filesystem::path& npy);
void write_tensor(const std::filesystem::path& npy, const NDArray& tensor);
// Writes every tensor to its file, and only then gives the files their names: when one cannot be written, none of them
// is replaced. UserError.
void write_tensors(const std::vector<std::string>& files, const std::vector<NDArray>& tensors);

// About normal numbers for floats, integers below `limit` for the others, booleans by halves: the same for a seed on
// every machine.
inline constexpr int64_t kRandomLimit = 8;
NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed, int64_t limit = kRandomLimit);

// What --input names ("x=image.npy"): the tensor of each file, by input. UsageError for an input that is given twice.
std::map<std::string, NDArray> read_named(const std::vector<std::string>& assignments);
// The files of such options.
std::vector<std::string> files_of(const std::string& option, const std::vector<std::string>& assignments);

// Those tensors in the order of `specs`. UserError: an input that is missing, unknown, or of another dtype or shape.
std::vector<NDArray> in_order(const std::vector<artifact::TensorSpec>& specs,
                              const std::map<std::string, NDArray>& given);

// A file name for a tensor's name: characters that file names cannot hold become '_'.
std::string file_name_of(const std::string& tensor_name);

// "float32 1x3x224x224"
std::string describe(const artifact::TensorSpec& spec);

}  // namespace headrace::tools
