#include "driver/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/descriptor.h"
#include "base/write_all.h"

namespace headrace::driver {

namespace {

namespace fs = std::filesystem;

constexpr int kMaxLinks = 40;  // the limit of Linux

[[noreturn]] void fail(const std::string& path, std::string_view why) {
  throw_user_error("cannot write '{}': {}", path, why);
}

bool is_stream(const std::string& path) {
  if (path.find('\0') != std::string::npos) return false;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::is_fifo(status) || fs::is_character_file(status);
}

// Follows the symbolic links of `path`. The file that they lead to need not exist.
std::string follow_links(const std::string& path) {
  fs::path at = path;
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(at, error)); ++i) {
    const fs::path next = fs::read_symlink(at, error);
    if (error || i == kMaxLinks) fail(path, "its symbolic links lead nowhere");
    at = next.is_absolute() ? next : at.parent_path() / next;
  }
  return at.string();
}

void check_name(const std::string& path) {
  if (path.find('\0') != std::string::npos) fail(path, "the name has a NUL character, which no file's name has");
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (path.empty()) fail(path, "the name is empty; name a file");
  if (fs::is_directory(status)) fail(path, "it is a folder; name a file in it");
  if (fs::exists(status) && !fs::is_regular_file(status))
    fail(path, "it is a device, pipe or socket, which would be lost; name another file");
}

void write_chars(int descriptor, const std::string& path, std::string_view text) {
  if (!write_all(descriptor, std::as_bytes(std::span(text)))) fail(path, std::strerror(errno));
}

}  // namespace

OutputFile::OutputFile(std::string path, FileKind kind) : path_(std::move(path)) {
  check_name(path_);
  target_ = follow_links(path_);
  // Creates the file without a name if the file system can, so that a killed process leaves nothing behind.
  const std::string folder = fs::path(target_).parent_path().string();
  const mode_t mode = kind == FileKind::kProgram ? 0777 : 0666;
  descriptor_ = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (descriptor_ < 0) open_named(mode);
}

std::string OutputFile::next_name() const {
  static std::atomic<int> count{0};
  // Truncates the name, because a temporary name must not exceed the system's limit when the file's own name is near
  // it.
  constexpr size_t kLongestStem = 200;
  const fs::path target(target_);
  const std::string stem = target.filename().string().substr(0, kLongestStem);
  return (target.parent_path() / fmt::format("{}.{}-{}.part", stem, getpid(), count++)).string();
}

void OutputFile::open_named(mode_t mode) {
  do {
    temporary_ = next_name();
    descriptor_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0)
    fail(path_, fmt::format("{}; name a file in a folder that exists and that you may write to", std::strerror(errno)));
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

bool OutputFile::give_temporary_name() {
  if (!temporary_.empty()) return true;
  const std::string source = fmt::format("/proc/self/fd/{}", descriptor_);
  do {
    temporary_ = next_name();
    if (linkat(AT_FDCWD, source.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  } while (errno == EEXIST);
  temporary_.clear();
  return false;
}

void OutputFile::commit() {
  if (!give_temporary_name()) fail(path_, std::strerror(errno));
  const bool ok = close(descriptor_) == 0 && rename(temporary_.c_str(), target_.c_str()) == 0;
  descriptor_ = -1;
  if (ok) return;
  const int reason = errno;
  unlink(temporary_.c_str());
  fail(path_, std::strerror(reason));
}

std::string OutputFile::set_aside() const {
  const std::string name = next_name();
  if (rename(target_.c_str(), name.c_str()) == 0) return name;
  if (errno != ENOENT) fail(path_, std::strerror(errno));
  return {};
}

void commit_both(OutputFile& first, OutputFile& last) {
  if (!last.give_temporary_name()) fail(last.path_, std::strerror(errno));
  const std::string replaced = first.set_aside();
  bool is_there = false;
  try {
    first.commit();
    is_there = true;
    last.commit();
  } catch (const UserError&) {
    if (is_there) unlink(first.target_.c_str());
    if (!replaced.empty()) rename(replaced.c_str(), first.target_.c_str());
    throw;
  }
  if (!replaced.empty()) unlink(replaced.c_str());
}

void check_no_input(const std::string& path, const std::vector<std::string>& inputs, std::string_view what) {
  if (path.find('\0') != std::string::npos) return;  // an invalid name, which OutputFile reports
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (fs::equivalent(path, input, ignored) && fs::is_regular_file(path, ignored))
      fail(path, fmt::format("{} is read from it; name another file", what));
  }
}

bool name_one_file(const std::string& a, const std::string& b) {
  if (a.find('\0') != std::string::npos || b.find('\0') != std::string::npos) return false;
  if (is_stream(a) || is_stream(b)) return false;
  const auto whole = [](const std::string& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(follow_links(path), ignored), ignored);
  };
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || whole(a) == whole(b);
}

void write_text(const std::string& path, std::string_view text) {
  if (is_stream(path)) {
    const Descriptor stream(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (stream.number() < 0) fail(path, std::strerror(errno));
    return write_chars(stream.number(), path, text);
  }
  OutputFile file(path);
  write_chars(file.descriptor(), path, text);
  file.commit();
}

}  // namespace headrace::driver
