// Loads a TensorProto's elements as one dense block of bytes, from any of the places where a model can store them.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_stamp.h"
#include "base/mapped_file.h"
#include "base/readable_file.h"
#include "frontend/onnx/file/model.h"

namespace headrace::onnx {

struct TensorData {
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> dims;
  std::span<const std::byte> bytes;       // row-major, little-endian; empty for strings
  std::vector<std::string_view> strings;  // the elements of a string tensor
  // Keeps `bytes` alive: memory of their own, or a mapped file of external data. Null for strings, which lie in the
  // memory that the tensor was read from, and live as long as that.
  std::shared_ptr<const void> owner;
  bool is_copied = false;  // the elements were decoded, realigned, or copied from memory; else read or mapped

  int64_t element_count() const;  // the product of dims; 1 for a scalar
};

// The origin of a tensor's message and its external data.
class TensorSource {
 public:
  // Reads the tensors of `model`, which must outlive this object, and the strings that it gives.
  explicit TensorSource(const Model& model) : name_(model.source), directory_(model.directory), file_(model.file) {}
  // Reads tensors from the caller's memory, which outlives the TensorData. `name` is for messages.
  explicit TensorSource(std::string name) : name_(std::move(name)) {}

  // x: dtype float*, (u)int2 to 64, bool, complex or string -> its elements, from raw_data, the typed field of the
  // dtype, or an external file (a relative path below the model's directory). Elements below 8 bits get a byte each.
  // External data, and what model_file.h leaves on disk, are read to memory of their own; files of external data over
  // MappedFile::kCopiedBytes are mapped. Throws UserError when the dtype is none of those, the number of elements
  // differs from what dims say, a file was written since it was first read, or the external file is missing, too short,
  // or named by an absolute path or one with "..", or a symbolic link that leads out of the model's folder.
  TensorData load(const TensorProto& tensor);

  // Returns the paths of the files of external data that were read.
  std::vector<std::string> external_files() const;

 private:
  struct ExternalPlace {
    std::string location;
    int64_t offset = 0;
  };
  struct ExternalFile {
    FileStamp stamp;
    std::shared_ptr<const MappedFile> mapped;  // null: the file is read
  };
  ExternalPlace find_external(const TensorProto& tensor, int64_t size_bytes) const;
  void load_external(const TensorProto& tensor, int64_t size_bytes, TensorData& data);
  void load_raw(std::string_view raw, TensorData& data) const;
  ReadableFile open_external(const TensorProto& tensor, const std::string& location);
  bool leaves_folder(const std::string& location) const;
  std::string path_of(const std::string& location) const;

  std::string name_;
  std::string directory_;
  std::shared_ptr<const ModelFile> file_;
  std::map<std::string, ExternalFile, std::less<>> external_files_;  // by location
  std::map<std::string, std::string, std::less<>> unreadable_;       // messages about files that could not be read
};

}  // namespace headrace::onnx
