#include "codegen/llvm/linker.h"

#include <fcntl.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/raw_ostream.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

#include "base/descriptor.h"

LLD_HAS_DRIVER(elf)

namespace headrace::codegen::llvm_plugin {

namespace {

// lld takes its files by name.
std::string path_of(const Descriptor& descriptor) { return fmt::format("/proc/self/fd/{}", descriptor.number()); }

// A file that exists in memory only.
class MemoryFile {
 public:
  MemoryFile(std::string name, std::string_view bytes)
      : name_(std::move(name)), descriptor_(memfd_create("headrace-link", MFD_CLOEXEC)) {
    if (descriptor_.number() < 0)
      throw_user_error("cannot make a file in memory for the linker: {}", std::strerror(errno));
    while (!bytes.empty()) {
      const ssize_t written = write(descriptor_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw_user_error("cannot write a file in memory for the linker: {}", std::strerror(errno));
      bytes.remove_prefix(static_cast<size_t>(written));
    }
  }
  std::string path() const { return path_of(descriptor_); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Descriptor descriptor_;
};

// Takes the linker's output from a pipe: lld writes to anything that is not a regular file in one go and in place,
// where for a regular file it would need a folder for a temporary one.
class OutputPipe {
 public:
  OutputPipe() : OutputPipe(make_pipe()) {}
  ~OutputPipe() { finish(false); }
  std::string path() const { return path_of(write_end_); }

  // Returns the bytes once the writer has closed its end. Without `complete` the writer failed and may have left its
  // end of the pipe open; then this does not wait for it.
  std::string finish(bool complete) {
    if (!complete) abandoned_ = true;
    write_end_.close();
    if (reader_.joinable()) reader_.join();
    return std::move(bytes_);
  }

 private:
  explicit OutputPipe(std::pair<int, int> ends)
      : read_end_(ends.first), write_end_(ends.second), reader_([this] { read_all(); }) {}

  static std::pair<int, int> make_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw_user_error("cannot make a pipe for the linker: {}", std::strerror(errno));
    return {ends[0], ends[1]};
  }

  void read_all() {
    constexpr int kPatienceMs = 20;
    std::string block(1 << 16, '\0');
    while (true) {
      pollfd waiting{.fd = read_end_.number(), .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, kPatienceMs) == 0) {
        if (abandoned_) return;
        continue;
      }
      const ssize_t count = read(read_end_.number(), block.data(), block.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return;
      bytes_.append(block.data(), static_cast<size_t>(count));
    }
  }

  std::string bytes_;
  std::atomic<bool> abandoned_{false};
  Descriptor read_end_;
  Descriptor write_end_;
  std::thread reader_;
};

// lld has process-wide state: one mutex, and whether a crash has left that state behind.
std::mutex lld_mutex;
bool lld_crashed = false;

// Runs lld so that its fatal errors come back here instead of ending the process. False: it failed.
bool link_guarded(const std::vector<const char*>& arguments, std::string& messages) {
  llvm::raw_string_ostream out(messages);
  llvm::raw_string_ostream errors(messages);
  // Signal handlers are swapped for the time of the link; a crash of another thread goes to the previous ones.
  llvm::CrashRecoveryContext::Enable();
  bool linked = false;
  bool returned = false;
  {
    llvm::CrashRecoveryContext recovery;
    returned = recovery.RunSafely([&] { linked = lld::elf::link(arguments, out, errors, false, false); });
    // A fatal error of lld's comes back as the exit code 1; signals lie above 128.
    lld_crashed = !returned && recovery.RetCode >= 128;
  }
  if (!lld_crashed) {
    llvm::CrashRecoveryContext recovery;
    recovery.RunSafely([] { lld::CommonLinkerContext::destroy(); });
  }
  llvm::CrashRecoveryContext::Disable();
  return returned && linked;
}

// Runs lld on a thread of its own: lld keeps data of sections in thread_local pools, which only the end of the thread
// frees.
bool run_lld(const std::vector<const char*>& arguments, std::string& messages) {
  std::promise<bool> linked;
  std::future<bool> result = linked.get_future();
  std::thread worker([&arguments, &messages, linked = std::move(linked)]() mutable {
    linked.set_value(link_guarded(arguments, messages));
    while (lld_crashed) pause();  // the pools cannot be ended then
  });
  const bool is_linked = result.get();
  if (lld_crashed) {
    worker.detach();
  } else {
    worker.join();
  }
  return is_linked;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}
}  // namespace

std::string link(const LinkJob& job) {
  std::vector<MemoryFile> files;
  std::vector<std::string> words = {"ld.lld", "--threads=1", "--no-mmap-output-file", "--color-diagnostics=never"};
  words.insert(words.end(), job.arguments.begin(), job.arguments.end());
  auto add_file = [&](const std::string& option, const std::string& name, std::string_view bytes) {
    files.emplace_back(name, bytes);
    words.push_back(option + files.back().path());
  };
  if (!job.script.empty()) add_file("--script=", "linker script", job.script);
  if (!job.version_script.empty()) add_file("--version-script=", "list of exports", job.version_script);
  for (const ObjectCode& object : job.objects) {
    add_file("", object.name, object.bytes);
  }
  words.push_back("--as-needed");
  for (const ObjectCode& library : job.libraries) add_file("", library.name, library.bytes);

  const std::lock_guard lock(lld_mutex);
  if (lld_crashed) throw InternalError("the linker has crashed before in this process; start a new one");
  OutputPipe output;
  words.push_back("-o");
  words.push_back(output.path());
  std::vector<const char*> arguments;
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::string messages;
  const bool linked = run_lld(arguments, messages);
  std::string bytes = output.finish(linked);
  if (lld_crashed)
    throw InternalError(
        "the linker crashed, or found no memory; where memory is not short, please report it with the model");
  if (!linked) {
    for (const MemoryFile& file : files) replace_all(messages, file.path(), file.name());
    replace_all(messages, "ld.lld: error: ", "");
    throw_user_error("linking failed: {}", messages);
  }
  return bytes;
}

}  // namespace headrace::codegen::llvm_plugin
