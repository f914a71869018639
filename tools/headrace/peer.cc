#include "tools/headrace/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/temporary_name.h"
#include "tools/headrace/session.h"
#include "tools/headrace/tensors.h"

extern char** environ;

namespace headrace::tools {

namespace {

std::string python() {
  const char* chosen = std::getenv("HEADRACE_PYTHON");
  return chosen != nullptr && *chosen != '\0' ? chosen : "python3";
}

}  // namespace

Peer::Folder::Folder() {
  std::string pattern = temporary_name((std::filesystem::temp_directory_path() / "headrace-peer-").string());
  if (mkdtemp(pattern.data()) == nullptr) throw_user_error("cannot make a folder in '{}'", pattern);
  path = pattern;
}

Peer::Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

Peer::Process::~Process() {
  if (id > 0) waitpid(id, nullptr, 0);
}

Peer::Peer(const std::string& name, const std::string& model, const std::map<std::string, NDArray>& inputs, int threads)
    : folder_(std::make_unique<Folder>()), name_(name) {
  std::ofstream names(folder_->path / "names.txt");
  int count = 0;
  for (const auto& [input, tensor] : inputs) {
    write_tensor(folder_->path / fmt::format("input_{}.npy", count++), tensor);
    names << input << "\n";
  }
  names.close();
  start({python(), "-m", "headrace.peer", name, model, "--folder", folder_->path.string(), "--threads",
         std::to_string(threads)});
  version_ = read_version();
}

Peer::Peer(const std::string& name) : name_(name) { start({python(), "-m", "headrace.peer", name, "--check"}); }

void Peer::require(const std::string& name, const std::string& model) {
  if (!model.ends_with(".onnx"))
    throw_user_error("'{}' is no ONNX model, which {} needs: give the model without --against", model, name);
  Peer(name).read_version();
}

std::string Peer::read_version() {
  const std::string line = read_line();
  if (line.starts_with("ready ")) return line.substr(6);
  if (line.starts_with("error ")) throw_user_error("{}: {}", name_, line.substr(6));
  if (line.starts_with("missing ")) throw MissingError(fmt::format("{}: {}", name_, line.substr(8)));
  throw MissingError(
      fmt::format("the peer '{}' did not start: '{} -m headrace.peer' needs the Python package headrace and "
                  "numpy; install them, or name their Python in HEADRACE_PYTHON",
                  name_, python()));
}

void Peer::start(const std::vector<std::string>& command) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw_user_error("no pipe for the peer '{}'", name_);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  // A peer that died must not end us when we write to it.
  signal(SIGPIPE, SIG_IGN);
  const int failed = posix_spawnp(&process_.id, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  to_.reset(fdopen(in[1], "w"));
  from_.reset(fdopen(out[0], "r"));
  if (failed != 0) {
    process_.id = -1;
    throw MissingError(
        fmt::format("cannot start '{}' for the peer '{}'; name a Python in HEADRACE_PYTHON", command[0], name_));
  }
}

std::string Peer::read_line() {
  std::string line;
  for (int c = std::fgetc(from_.get()); c != EOF && c != '\n'; c = std::fgetc(from_.get()))
    line.push_back(static_cast<char>(c));
  return line;
}

std::string Peer::ask(const char* request) {
  std::fputs(request, to_.get());
  std::fflush(to_.get());
  std::string answer = read_line();
  if (answer.empty() || answer.rfind("error ", 0) == 0) {
    throw_user_error("the peer '{}' failed: {}", name_, answer.empty() ? "it ended" : answer.substr(6));
  }
  return answer;
}

std::vector<NDArray> Peer::run() {
  const std::string answer = ask("save\n");
  const int count = std::atoi(answer.c_str() + answer.find(' ') + 1);
  std::vector<NDArray> outputs;
  for (int i = 0; i < count; ++i) outputs.push_back(read_tensor(folder_->path / fmt::format("output_{}.npy", i)));
  return outputs;
}

double Peer::time() { return std::strtod(ask("time\n").c_str(), nullptr); }

}  // namespace headrace::tools
