// The bytes of an ONNX file, without the large data of its initialisers.
//
// The file has one range of addresses, in which every byte has its place. The raw_data, float_data and double_data of
// an initialiser of the main graph stay on disk if they are large, and their addresses must not be read: read() copies
// them from the file to the tensor's own memory. So an import never holds a weight twice, and a program that asks only
// for a model's inputs reads none of its weights.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/readable_file.h"

namespace headrace::onnx {

class ModelFile {
 public:
  // Files that are larger than this, which is more than protobuf allows, are mapped and not read: most are no models.
  // Shrinking a mapped file ends the process.
  static constexpr size_t kMostReadBytes = size_t{1} << 31;
  // Data of at least this size stays on disk.
  static constexpr size_t kLeastApartBytes = size_t{64} << 10;

  // Reads the file. Throws UserError when `path` does not exist, cannot be read, is not a regular file, or changes
  // while it is read. A malformed file is read whole: the decoder says what is wrong with it.
  explicit ModelFile(const std::string& path);
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  std::string_view bytes() const { return {image_, file_.size_bytes()}; }
  // Returns whether the first byte of `part`, a view of any memory, belongs to data that stays on disk.
  bool is_apart(std::string_view part) const;
  // Copies a part of bytes() from the file. Throws UserError when the file was written since it was opened, also when
  // it is shorter now.
  void read(std::string_view part, std::span<std::byte> dst) const;

 private:
  friend class ApartData;
  void forbid(const char* begin, const char* end);

  ReadableFile file_;
  char* image_ = nullptr;                     // pages that nobody wrote take no memory
  std::map<const char*, const char*> apart_;  // the end of each part that stays on disk, by its beginning
};

}  // namespace headrace::onnx
