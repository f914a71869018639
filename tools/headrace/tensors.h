// Tensors of the command line: .npy files in and out, and inputs made from a seed.
#pragma once

#include <filesystem>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"

namespace headrace::tools {

NDArray read_tensor(const std::filesystem::path& npy);
void write_tensor(const std::filesystem::path& npy, const NDArray& tensor);

// Normal numbers for floats, small integers for the others, booleans by halves: the same for a seed on every machine.
NDArray random_tensor(const artifact::TensorSpec& spec, uint64_t seed);

// The tensors of `assignments` ("x=image.npy") in the order of `specs`. UserError: an input that is missing, unknown,
// given twice, or whose file has another dtype or shape.
std::vector<NDArray> read_inputs(const std::vector<artifact::TensorSpec>& specs,
                                 const std::vector<std::string>& assignments);

// A file name for a tensor's name: characters that file names cannot hold become '_'.
std::string file_name_of(const std::string& tensor_name);

// "float32 1x3x224x224"
std::string describe(const artifact::TensorSpec& spec);

}  // namespace headrace::tools
