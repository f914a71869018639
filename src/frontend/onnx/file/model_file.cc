#include "frontend/onnx/file/model_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <protozero/pbf_reader.hpp>

#include "base/error.h"
#include "frontend/onnx/file/read_values.h"

namespace headrace::onnx {

namespace {

// A tag and a length, or a tag and a number.
constexpr size_t kMostHeaderBytes = 20;
// The bytes that are read at once. Small against kLeastApartBytes, because what was read of the data is read again.
constexpr size_t kReadBytes = size_t{16} << 10;

// The messages on the way to an initialiser's data, and the fields in which they lie.
enum class Level : uint8_t { model, graph, tensor };

bool is_data(uint32_t tensor_field) {
  return tensor_field == 4 || tensor_field == 9 || tensor_field == 10;  // float_data, raw_data, double_data
}

}  // namespace

// Reads a file from its beginning to its end, and passes over the data that stays on disk.
class ApartData {
 public:
  explicit ApartData(ModelFile& model) : model_(model), end_(model.image_ + model.file_.size_bytes()) {}

  void read() {
    try {
      find(model_.bytes(), Level::model);
    } catch (const protozero::exception&) {  // the decoder reports it, with its place in the model
    }
    read_to(end_);
  }

 private:
  // Leaves the data of initialisers apart, in one message and those inside it. Reads little more than their headers.
  void find(std::string_view message, Level level) {
    protozero::pbf_reader reader(message.data(), message.size());
    while (next(reader)) {
      if (reader.wire_type() != protozero::pbf_wire_type::length_delimited) {
        reader.skip();
        continue;
      }
      const uint32_t field = reader.tag();
      const protozero::data_view view = reader.get_view();
      const std::string_view content(view.data(), view.size());
      if (level == Level::model && field == kModelGraph) {
        find(content, Level::graph);
      } else if (level == Level::graph && field == kGraphInitializer) {
        find(content, Level::tensor);
      } else if (level == Level::tensor && is_data(field) && content.size() >= ModelFile::kLeastApartBytes) {
        leave_apart(content);
      }
    }
  }

  // Moves to the next field of a message, once its header is in memory.
  bool next(protozero::pbf_reader& reader) {
    const protozero::data_view rest = reader.data();
    read_to(rest.data() + std::min(rest.size(), kMostHeaderBytes));
    return reader.next();
  }

  void leave_apart(std::string_view data) {
    char* const end = model_.image_ + (data.data() + data.size() - model_.image_);
    model_.apart_.emplace(data.data(), end);
    place_ = end;
  }

  // Reads the file to `end` at least.
  void read_to(const char* end) {
    if (end <= place_) return;
    const auto wanted = static_cast<size_t>(end - place_), left = static_cast<size_t>(end_ - place_);
    const size_t size = std::min(left, std::max(wanted, kReadBytes));
    model_.file_.read({reinterpret_cast<std::byte*>(place_), size}, static_cast<size_t>(place_ - model_.image_));
    place_ += size;
  }

  ModelFile& model_;
  const char* const end_;
  char* place_ = model_.image_;  // everything before it was read, or stays on disk
};

ModelFile::ModelFile(const std::string& path) : file_(path, "ONNX model") {
  const size_t size = file_.size_bytes();
  if (size == 0) return;  // the system maps no empty files
  const bool is_mapped = size > kMostReadBytes;
  void* data = is_mapped
                   ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.descriptor().number(), 0)
                   : ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) file_.fail();
  image_ = static_cast<char*>(data);
  if (is_mapped) return;
  try {
    ApartData(*this).read();
  } catch (...) {
    ::munmap(image_, size);
    throw;
  }
  ::mprotect(image_, size, PROT_READ);
  for (const auto& [begin, end] : apart_) forbid(begin, end);
}

// Makes the whole pages of a part that stays on disk unreadable: a mistake must not read zeros.
void ModelFile::forbid(const char* begin, const char* end) {
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (static_cast<size_t>(begin - image_) + page - 1) / page * page,
               last = static_cast<size_t>(end - image_) / page * page;
  if (first < last) ::mprotect(image_ + first, last - first, PROT_NONE);
}

ModelFile::~ModelFile() {
  if (image_ != nullptr) ::munmap(image_, file_.size_bytes());
}

bool ModelFile::is_apart(std::string_view part) const {
  const auto after = apart_.upper_bound(part.data());
  return after != apart_.begin() && std::less<>()(part.data(), std::prev(after)->second);
}

void ModelFile::read(std::string_view part, std::span<std::byte> dst) const {
  file_.read(dst.first(part.size()), static_cast<size_t>(part.data() - image_));
}

}  // namespace headrace::onnx
