#include "tools/npz.h"

#include <zip.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/mapped_file.h"

namespace headrace::tools {

namespace {

// Deflate, which numpy uses, shrinks nothing further, so a member that claims more would take memory for nothing. Other
// methods may shrink more; such members are refused.
constexpr uint64_t kLargestRatio = 1032;

[[noreturn]] void fail(const std::string& source, std::string_view message) {
  throw_user_error("'{}' is not an archive that can be read: {}", source, message);
}

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

// Reads from `bytes`, which must outlive the archive.
Archive open_archive(std::span<const std::byte> bytes, const std::string& source) {
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* data = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
  // Members of one name are an error of the check, too.
  Archive archive(data == nullptr ? nullptr : zip_open_from_source(data, ZIP_RDONLY | ZIP_CHECKCONS, &error));
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  if (archive == nullptr) {
    if (data != nullptr) zip_source_free(data);
    fail(source, reason);
  }
  return archive;
}

// A member that is inflated in pieces.
class Member {
 public:
  Member(zip_t* archive, const zip_stat_t& info, const std::string& source) : info_(info), source_(source) {
    if (info.size > (info.comp_size + 1) * kLargestRatio)
      fail(source, fmt::format("its member '{}' claims more bytes than it can hold", info.name));
    file_.reset(zip_fopen_index(archive, info.index, 0));
    if (file_ == nullptr) fail(source, fmt::format("its member '{}': {}", info.name, zip_strerror(archive)));
  }

  // Appends the next bytes, or all that are left if these are fewer.
  void read(uint64_t count, std::vector<std::byte>& bytes) {
    size_t at = bytes.size();
    bytes.resize(at + std::min(count, info_.size - done_));
    for (; at < bytes.size();) {
      const zip_int64_t got = zip_fread(file_.get(), bytes.data() + at, bytes.size() - at);
      if (got <= 0) fail_damaged();
      at += static_cast<size_t>(got);
      done_ += static_cast<uint64_t>(got);
    }
  }

  // Call after all bytes were read: the checksum is compared at the member's end only.
  void finish() {
    std::byte past;
    if (zip_fread(file_.get(), &past, 1) != 0) fail_damaged();
  }

 private:
  [[noreturn]] void fail_damaged() {
    fail(source_, fmt::format("its member '{}' is damaged: {}", info_.name, zip_file_strerror(file_.get())));
  }

  const zip_stat_t& info_;
  const std::string& source_;
  std::unique_ptr<zip_file_t, CloseMember> file_;
  uint64_t done_ = 0;
};

// Reads the head of a member, which must say the member's size.
NpyHeader read_header(Member& member, const zip_stat_t& info, const std::string& source) {
  const std::string name = fmt::format("{}:{}", source, info.name);
  std::vector<std::byte> head;
  member.read(kNpyPrefixBytes, head);
  const size_t head_bytes = npy_head_bytes(head, name);
  if (head_bytes > head.size()) member.read(head_bytes - head.size(), head);
  NpyHeader header = parse_npy_header(head, name);
  const uint64_t wanted = header.head_bytes + static_cast<uint64_t>(header.data_bytes);
  if (info.size != wanted)
    fail(source, fmt::format("its member '{}' has {} bytes where the head of its array asks for {}", info.name,
                             info.size, wanted));
  return header;
}

NpyArray read_elements(Member& member, const NpyHeader& header, const std::string& name) {
  std::vector<std::byte> elements;
  elements.reserve(static_cast<size_t>(header.data_bytes));
  member.read(static_cast<uint64_t>(header.data_bytes), elements);
  member.finish();
  return make_npy(header, std::move(elements), name);
}

}  // namespace

std::vector<std::pair<std::string, NpyArray>> read_npz(const std::filesystem::path& path, const ChooseArray& chosen) {
  const std::string source = path.string();
  const auto file = MappedFile::open(source, "array archive");
  const Archive archive = open_archive(file->bytes(), source);
  constexpr std::string_view kEnding = ".npy";
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  if (count <= 0) fail(source, "it holds no arrays");
  std::vector<std::pair<std::string, NpyArray>> arrays;
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &info) != 0)
      fail(source, zip_strerror(archive.get()));
    std::string name = info.name;
    if (!name.ends_with(kEnding)) fail(source, fmt::format("its member '{}' is not an array (.npy)", name));
    Member member(archive.get(), info, source);
    const NpyHeader header = read_header(member, info, source);
    name.resize(name.size() - kEnding.size());
    if (!chosen || chosen(name, header))
      arrays.emplace_back(std::move(name), read_elements(member, header, fmt::format("{}:{}", source, info.name)));
  }
  return arrays;
}

}  // namespace headrace::tools
