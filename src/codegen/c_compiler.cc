#include "codegen/c_compiler.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "base/write_all.h"

extern char** environ;

namespace headrace::codegen {

namespace {

namespace fs = std::filesystem;

// A folder that ends with its owner.
class Folder {
 public:
  Folder() {
    std::error_code error;
    const fs::path temporary = fs::temp_directory_path(error);
    if (error) throw_user_error("there is no folder for temporary files: {}; set TMPDIR to one", error.message());
    std::string name = (temporary / "headrace-c-").string() + std::string(6, 'X');
    if (mkdtemp(name.data()) == nullptr)
      throw_user_error("cannot make a folder in '{}' for the C compiler: {}", temporary.string(), std::strerror(errno));
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

std::string find_c_compiler(const std::string& wanted, std::string_view user, CLanguage language) {
  if (!wanted.empty()) return wanted;
  const bool is_c = language == CLanguage::c;
  const char* variable = is_c ? "CC" : "CXX";
  if (const char* chosen = std::getenv(variable); chosen != nullptr && *chosen != '\0') return chosen;
  const std::vector<const char*> names =
      is_c ? std::vector<const char*>{"cc", "gcc", "clang"} : std::vector<const char*>{"c++", "g++", "clang++"};
  for (const char* name : names) {
    if (is_program(name)) return name;
  }
  throw MissingError(
      fmt::format("there is no {} compiler here ({}), which {} needs; install one, name it by the variable {}, or "
                  "compile without that backend",
                  is_c ? "C" : "C++", fmt::join(names, ", "), user, variable));
}

namespace {

// Returns the words of "gcc -m64", as make and configure scripts take the variable CC; a name of a program is one word.
std::vector<std::string> words_of(const std::string& compiler) {
  if (is_program(compiler)) return {compiler};
  std::vector<std::string> words;
  std::istringstream stream(compiler);
  for (std::string word; stream >> word;) words.push_back(word);
  return words.empty() ? std::vector<std::string>{compiler} : words;
}

// Returns how a file begins, which a compiler may have written in any encoding and at any length.
std::string first_text(const std::string& path) {
  constexpr size_t kShown = 400;
  std::string bytes(kShown, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  // A character that the end cuts would be shown as broken.
  for (size_t cut = 0; bytes.size() == kShown && cut < 3 && !is_utf8(bytes); ++cut) bytes.pop_back();
  return as_utf8(bytes);
}

// Throws UserError for a compiler that ended with this wait status.
void check_status(int status, const std::string& name, const std::string& errors) {
  if (status == 0) return;
  const std::string said = first_text(errors);
  const std::string end = WIFEXITED(status) ? fmt::format("it ended with the exit status {}", WEXITSTATUS(status))
                                            : fmt::format("it was ended by the signal {}", WTERMSIG(status));
  throw_user_error("the {} failed: {}", name, said.empty() ? end + " and no message" : said);
}

}  // namespace

std::string compile_c(const std::string& compiler, const std::string& source, CLanguage language) {
  const Folder folder;
  const bool is_c = language == CLanguage::c;
  const std::string text = folder.file(is_c ? "regions.c" : "regions.cc"), object = folder.file("regions.o"),
                    errors = folder.file("errors");
  write_file(text, source);
  const std::string name = fmt::format("{} compiler '{}'", is_c ? "C" : "C++", compiler);
  std::vector<std::string> command = words_of(compiler);
  command.insert(command.end(),
                 {is_c ? "-std=c11" : "-std=c++17", "-O2", "-fPIC", "-ffp-contract=off", "-fno-math-errno"});
  // The object is linked into a file that needs no C++ library.
  if (!is_c) command.insert(command.end(), {"-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"});
  command.insert(command.end(), {"-c", text, "-o", object});
  check_status(run(command, errors), name, errors);
  if (!fs::exists(object)) throw_user_error("the {} ended well and wrote no object file", name);
  const auto made = MappedFile::open(object, "object file of the C compiler");
  return {reinterpret_cast<const char*>(made->bytes().data()), made->bytes().size()};
}

}  // namespace headrace::codegen
