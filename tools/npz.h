// NumPy's .npz format: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/npy.h"

namespace headrace::tools {

// Returns whether the elements of an array are read, by its name, which comes without ".npy", and its head; may throw.
using ChooseArray = std::function<bool(const std::string& name, const NpyHeader& header)>;

// Reads the arrays of an archive, as numpy.savez and savez_compressed write them, in the archive's order. `chosen` sees
// each array before its elements are inflated, which may take a thousand times the size of the file; null: all are
// read. Throws UserError for a file that is not an archive or damaged, for members that are not .npy files or are of
// another size than their head says, and for two of one name.
std::vector<std::pair<std::string, NpyArray>> read_npz(const std::filesystem::path& path,
                                                       const ChooseArray& chosen = {});

}  // namespace headrace::tools
