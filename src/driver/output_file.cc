#include "driver/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace headrace::driver {

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  if (path_.empty() || std::filesystem::is_directory(path_, ignored))
    throw_user_error("cannot write '{}': it is a folder; name a file, such as model.so", path_);
  static std::atomic<int> count{0};
  do {
    temporary_ = fmt::format("{}.{}-{}.part", path_, getpid(), count++);
    descriptor_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0777);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    throw_user_error("cannot write '{}': {}; name a file in a folder that exists and that you may write to", path_,
                     std::strerror(errno));
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  close(descriptor_);
  unlink(temporary_.c_str());
}

void OutputFile::commit() {
  const bool ok = close(descriptor_) == 0 && rename(temporary_.c_str(), path_.c_str()) == 0;
  descriptor_ = -1;
  if (ok) return;
  const int reason = errno;
  unlink(temporary_.c_str());
  throw_user_error("cannot write '{}': {}", path_, std::strerror(reason));
}

void write_text(const std::string& path, std::string_view text) {
  OutputFile file(path);
  while (!text.empty()) {
    const ssize_t written = write(file.descriptor(), text.data(), text.size());
    if (written < 0 && errno != EINTR) throw_user_error("'{}' cannot be written: {}", path, std::strerror(errno));
    if (written > 0) text.remove_prefix(static_cast<size_t>(written));
  }
  file.commit();
}

}  // namespace headrace::driver
