// A process for stages, for tests: `test-stage-host CODE` runs a code that fails in the way that its input says, and
// `test-stage-host wrong WAY` answers calls in a way that no process should.
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "base/error.h"
#include "executors/pipeline/isolation/connection.h"
#include "executors/pipeline/isolation/shared_memory.h"
#include "tools/stage_host/serve.h"

namespace headrace::stage_host {
namespace {

using namespace executors::pipeline;
using namespace executors::pipeline::isolation;

Port any(std::string name) { return {.spec = {.name = std::move(name), .dtype = {}, .shape = {}}, .is_any = true}; }
Port floats(std::string name, std::vector<int64_t> shape) {
  return {.spec = {.name = std::move(name), .dtype = DataType::parse("float32"), .shape = std::move(shape)}};
}

[[noreturn]] void hang() {
  while (true) ::pause();
}

// Doubles numbers from 0 on; others say how the call ends.
int64_t double_or_fail(int64_t x) {
  switch (x) {
    case -1:
      ::signal(SIGSEGV, SIG_DFL);  // a sanitizer has its own handler
      ::raise(SIGSEGV);
      break;
    case -2:
      ::_exit(3);
    case -3:
      hang();
    case -4:
      throw UserError("four is bad");
    case -5:
      ::kill(::getpid(), SIGKILL);
      break;
    case -6:
      throw RefusedError("StageLost", "not what it says");
    case -7:
      std::abort();
    case -8:
      throw UserError(std::string(1 << 20, 'x'));
    default:
      break;
  }
  return x * 2;
}

// Crashes in the first calls of all processes together, as many as there are characters in the file.
int64_t crash_at_first(const std::string& path, int64_t x) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  const off_t left = ::lseek(file, 0, SEEK_END);
  if (left > 0 && ::ftruncate(file, left - 1) == 0) ::raise(SIGKILL);
  ::close(file);
  return x * 2;
}

std::shared_ptr<StageCode> make_code(const std::string& name, const std::string& argument) {
  if (name == "double") return make_function_stage(make_packed(&double_or_fail), {any("x")}, {any("y")});
  if (name == "twice") return make_function_stage(make_packed(&double_or_fail), {any("x")}, {any("z")});
  if (name == "echo") return make_function_stage(make_packed([](Value x) { return x; }), {any("x")}, {any("y")});
  if (name == "crash_at_first") {
    const auto call = [argument](int64_t x) { return crash_at_first(argument, x); };
    return make_function_stage(make_packed(call), {any("x")}, {any("y")});
  }
  if (name == "tensor")
    return make_function_stage(make_packed([](NDArray x) { return x; }), {floats("x", {2, 3})}, {floats("y", {2, 3})});
  if (name == "batch") {
    const auto call = [](Array<Value> requests) {
      Array<Value> results;
      for (const Value& x : requests) results.push_back(Value(double_or_fail(x.as<int64_t>())));
      return results;
    };
    return make_batch_function_stage(make_packed(call), {any("x")}, {any("y")});
  }
  if (name == "exits") ::_exit(7);
  if (name == "sleeps") hang();
  if (name == "sleeps_next") {  // the second process
    if (::access(argument.c_str(), F_OK) == 0) hang();
    ::close(::open(argument.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return make_code("double", "");
  }
  throw UserError("there is no code '" + name + "'");
}

// ---- Wrong answers.

class WrongHost {
 public:
  explicit WrongHost(std::string way) : way_(std::move(way)), memory_(Descriptor(kMemory)) {}

  int serve() {
    Message message;
    receive(kConnection, message, {});
    introduce(message.epoch);
    receive(kConnection, message, {});
    memory_.map();
    outputs_ = memory_.bytes().subspan(message.nbytes, message.count);
    while (receive(kConnection, message, {}) == Received::message) answer(message);
    return 0;
  }

 private:
  void introduce(uint64_t epoch) {
    CodePorts ports{.inputs = {any("x")}, .outputs = {any("y")}, .are_shared = {false}};
    if (way_.starts_with("tensor")) ports.outputs = {floats("y", {2, 3})};
    if (way_ == "ports_batch") ports.most_in_batch = 1 << 30;
    if (way_ == "ports_memory") ports.memory_bytes = -1;
    if (way_ == "ports_huge") ports.outputs = {floats("y", {int64_t{1} << 43}), floats("z", {int64_t{1} << 43})};
    WireWriter writer(memory_.bytes(), nullptr);
    if (way_ == "ports_shape") {
      writer.put(Value(Array<Value>{Value(int64_t{0}), Value("x"), Value(int64_t{3})}));
    } else {
      put_ports(writer, ports);
    }
    Message ready{.kind = MessageKind::ready, .epoch = epoch, .nbytes = writer.size()};
    if (way_ == "ready_epoch") ready.epoch += 1;
    if (way_ == "ready_nbytes") ready.nbytes = uint64_t{1} << 40;
    if (way_ == "ready_kind") ready.kind = MessageKind::answer;
    send(kConnection, ready);
  }

  void send_bytes(size_t nbytes) {
    const std::string bytes(nbytes, 'x');
    ::send(kConnection, bytes.data(), nbytes, MSG_NOSIGNAL);
  }

  void answer(const Message& call) {
    WireWriter writer(outputs_, nullptr);
    put(writer);
    Message answer{
        .kind = MessageKind::answer, .epoch = call.epoch, .sequence = call.sequence, .nbytes = writer.size()};
    if (way_ == "short") return send_bytes(3);
    if (way_ == "long") return send_bytes(1000);
    if (way_ == "magic") answer.magic = 0;
    if (way_ == "kind") answer.kind = static_cast<MessageKind>(99);
    if (way_ == "ready_again") answer.kind = MessageKind::ready;
    if (way_ == "epoch") answer.epoch += 1;
    if (way_ == "sequence") answer.sequence += 1;
    if (way_ == "nbytes") answer.nbytes = ~uint64_t{0};
    if (way_ == "no_error") answer.count = 1;
    if (way_ == "nothing") answer.nbytes = 0;
    if (way_ == "vanish") ::_exit(0);
    if (way_ == "close") {
      ::shutdown(kConnection, SHUT_RDWR);
      hang();
    }
    if (way_ == "shrink" && ::ftruncate(kMemory, 0) == 0) ::_exit(9);
    if (way_ == "stale") {
      send(kConnection, {.kind = MessageKind::answer, .epoch = call.epoch - 1, .sequence = call.sequence});
      send(kConnection, {.kind = MessageKind::answer, .epoch = call.epoch, .sequence = call.sequence - 1});
    }
    send(kConnection, answer);
    if (way_ == "twice") send(kConnection, answer);
  }

  void put(WireWriter& writer) {
    if (way_ == "garbage") {
      static_cast<void>(writer.reserve(DataType::parse("uint8"), std::vector<int64_t>{4000}));
      for (std::byte& byte : outputs_.first(4000))
        byte = static_cast<std::byte>((state_ = state_ * 1664525 + 1013904223) >> 24);
      outputs_[0] = static_cast<std::byte>(state_ % 10);  // a kind that there is
      for (size_t i = 1; i < 4; ++i) outputs_[i] = {};
    } else if (way_ == "deep") {
      for (int i = 0; i < 1000; ++i) {
        writer.put(Value(Array<Value>{Value(int64_t{1})}));
        writer.rewind(writer.size() - 64);
      }
      writer.put(Value());
    } else if (way_ == "tensor_dtype") {
      writer.put(Value(NDArray::zeros({2, 3}, DataType::parse("int32"))));
    } else if (way_ == "tensor_large") {
      writer.put(Value(NDArray::zeros({2, 4}, DataType::parse("float32"))));
    } else if (way_ == "tensor_rank") {
      writer.put(Value(NDArray::zeros({6}, DataType::parse("float32"))));
    } else if (way_ == "tensor_none") {
      writer.put(Value());
    } else if (way_ == "tensor_small") {
      writer.put(Value(NDArray::zeros({2, 1}, DataType::parse("float32"))));
    } else if (way_ == "long_text") {
      const uint64_t header[4] = {4, 0, uint64_t{1} << 50, 0};
      writer.put(Value());
      std::memcpy(outputs_.data(), header, sizeof(header));
    } else {
      writer.put(Value(int64_t{42}));
    }
  }

  const std::string way_;
  SharedMemory memory_;
  std::span<std::byte> outputs_;
  uint32_t state_ = static_cast<uint32_t>(::getpid());
};

int run(int count, char** words) {
  const std::string name = count > 1 ? words[1] : "", argument = count > 2 ? words[2] : "";
  if (name == "wrong") return WrongHost(argument).serve();
  return serve([&] { return make_code(name, argument); }, {.copies_inputs = name == "echo"});
}

}  // namespace
}  // namespace headrace::stage_host

int main(int count, char** words) { return headrace::stage_host::run(count, words); }
