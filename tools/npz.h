// NumPy's .npz format: a zip archive of .npy files.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tools/npy.h"

namespace headrace::tools {

// Reads all arrays of an archive, as numpy.savez and savez_compressed write them, in the archive's order. Their names
// come without ".npy". Throws UserError for a file that is not an archive or damaged, for members that are not .npy
// files, and for two of one name.
std::vector<std::pair<std::string, NpyArray>> read_npz(const std::filesystem::path& path);

}  // namespace headrace::tools
