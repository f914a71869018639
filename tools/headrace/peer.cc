#include "tools/headrace/peer.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"
#include "driver/output_file.h"
#include "object/array.h"
#include "tools/headrace/output.h"
#include "tools/headrace/python_program.h"
#include "tools/headrace/session.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

Peer::Peer(const std::string& name, const std::string& model, const std::map<std::string, NDArray>& inputs, int threads,
           const std::string& level)
    : name_(name) {
  Array<Value> names;
  for (const auto& [input, tensor] : inputs) {
    write_tensor(folder_.path() / fmt::format("input_{}.npy", names.size()), tensor);
    names.push_back(Value(input));
  }
  driver::write_text((folder_.path() / "inputs.json").string(), to_json({{"names", Value(names)}}));
  std::vector<std::string> command{
      python_program(),        "-m",        "headrace.peer",        name, model, "--folder",
      folder_.path().string(), "--threads", std::to_string(threads)};
  if (!level.empty()) command.insert(command.end(), {"--level", level});
  start(command);
  version_ = read_version();
}

Peer::Peer(const std::string& name) : name_(name) { start({python_program(), "-m", "headrace.peer", name, "--check"}); }

void Peer::require(const std::string& name, const std::string& model) {
  if (!is_onnx(model))
    throw_user_error("'{}' is not an ONNX model, which {} needs: name one of the same network with --against-model",
                     model, name);
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
                  name_, python_program()));
}

void Peer::start(const std::vector<std::string>& command) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0)
    throw_user_error("cannot make a pipe to the peer '{}': {}", name_, std::strerror(errno));
  to_.reset(fdopen(in[1], "w"));
  const Descriptor child_in(in[0]);
  if (pipe2(out, O_CLOEXEC) != 0)
    throw_user_error("cannot make a pipe to the peer '{}': {}", name_, std::strerror(errno));
  from_.reset(fdopen(out[0], "r"));
  const Descriptor child_out(out[1]);
  // A peer that died must not end us when we write to it.
  signal(SIGPIPE, SIG_IGN);
  if (!process_.start(command, child_in.number(), child_out.number(), folder_))
    throw MissingError(
        fmt::format("cannot start '{}' for the peer '{}'; name a Python in HEADRACE_PYTHON", command[0], name_));
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
  for (int i = 0; i < count; ++i) outputs.push_back(read_tensor(folder_.path() / fmt::format("output_{}.npy", i)));
  return outputs;
}

double Peer::time() { return std::strtod(ask("time\n").c_str(), nullptr); }

}  // namespace headrace::tools
