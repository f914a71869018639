#include "backends/ccompiler/compile/run_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/read_text.h"
#include "base/write_all.h"

extern char** environ;

namespace headrace::backends::ccompiler {

namespace {

namespace fs = std::filesystem;

// A folder that ends with its owner.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "headrace-c-").string() + std::string(6, 'X');
    if (mkdtemp(name.data()) == nullptr)
      throw_user_error("cannot make a folder in '{}' for the C compiler: {}", fs::temp_directory_path().string(),
                       std::strerror(errno));
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void write_file(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const Descriptor owner(file);
  if (file < 0 || !write_all(file, std::as_bytes(std::span(text))))
    throw_user_error("cannot write '{}': {}", path, std::strerror(errno));
}

bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0;
  const char* path = std::getenv("PATH");
  std::string_view left = path == nullptr ? "" : path;
  while (!left.empty()) {
    const size_t end = std::min(left.find(':'), left.size());
    if (access((fs::path(left.substr(0, end)) / name).c_str(), X_OK) == 0) return true;
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return false;
}

// Runs the command with its errors going to a file; returns its wait status.
int run(std::vector<std::string> command, const std::string& errors) {
  std::vector<char*> args;
  for (std::string& word : command) args.push_back(word.data());
  args.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_CREAT | O_WRONLY, 0600);
  pid_t child = 0;
  const int error = posix_spawnp(&child, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    throw MissingError(fmt::format("the C compiler '{}' cannot be started: {}", command[0], std::strerror(error)));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

std::string find_compiler(const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  if (const char* chosen = std::getenv("CC"); chosen != nullptr && *chosen != '\0') return chosen;
  for (const char* name : {"cc", "gcc", "clang"}) {
    if (is_program(name)) return name;
  }
  throw MissingError(
      "there is no C compiler here (cc, gcc or clang), which the backend 'ccompiler' needs; install one, name it by "
      "the "
      "variable CC, or compile without that backend");
}

std::string compile_c(const std::string& compiler, const std::string& source) {
  const Folder folder;
  const std::string text = folder.file("regions.c"), object = folder.file("regions.o"), errors = folder.file("errors");
  write_file(text, source);
  const int status = run(
      {compiler, "-std=c99", "-O2", "-fPIC", "-ffp-contract=off", "-fno-math-errno", "-c", text, "-o", object}, errors);
  if (status != 0) {
    constexpr size_t kShown = 400;
    throw_user_error("the C compiler '{}' failed: {}", compiler, read_text(errors, "file of errors").substr(0, kShown));
  }
  const auto made = MappedFile::open(object, "object file of the C compiler");
  return {reinterpret_cast<const char*>(made->bytes().data()), made->bytes().size()};
}

}  // namespace headrace::backends::ccompiler
