#include "tools/npz.h"

#include <zip.h>

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

std::vector<std::byte> read_member(zip_t* archive, const zip_stat_t& info, const std::string& source) {
  if (info.size > (info.comp_size + 1) * kLargestRatio)
    fail(source, fmt::format("its member '{}' claims more bytes than it can hold", info.name));
  const std::unique_ptr<zip_file_t, CloseMember> member(zip_fopen_index(archive, info.index, 0));
  if (member == nullptr) fail(source, fmt::format("its member '{}': {}", info.name, zip_strerror(archive)));
  std::vector<std::byte> bytes(info.size);
  for (size_t done = 0; done < bytes.size();) {
    const zip_int64_t count = zip_fread(member.get(), bytes.data() + done, bytes.size() - done);
    if (count <= 0)
      fail(source, fmt::format("its member '{}' is damaged: {}", info.name, zip_file_strerror(member.get())));
    done += static_cast<size_t>(count);
  }
  // The checksum is compared at the member's end only.
  std::byte past;
  if (zip_fread(member.get(), &past, 1) != 0)
    fail(source, fmt::format("its member '{}' is damaged: {}", info.name, zip_file_strerror(member.get())));
  return bytes;
}

}  // namespace

std::vector<std::pair<std::string, NpyArray>> read_npz(const std::filesystem::path& path) {
  const std::string source = path.string();
  const auto file = MappedFile::open(source, "array archive");
  const Archive archive = open_archive(file->bytes(), source);
  constexpr std::string_view kEnding = ".npy";
  std::vector<std::pair<std::string, NpyArray>> arrays;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive.get(), 0); ++i) {
    zip_stat_t info;
    if (zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &info) != 0)
      fail(source, zip_strerror(archive.get()));
    std::string name = info.name;
    if (!name.ends_with(kEnding)) fail(source, fmt::format("its member '{}' is not an array (.npy)", name));
    const std::vector<std::byte> bytes = read_member(archive.get(), info, source);
    const std::string member = fmt::format("{}:{}", source, name);
    name.resize(name.size() - kEnding.size());
    arrays.emplace_back(std::move(name), parse_npy(bytes, member));
  }
  if (arrays.empty()) fail(source, "it holds no arrays");
  return arrays;
}

}  // namespace headrace::tools
