#include "tools/stage_host/serve.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/error.h"
#include "executors/pipeline/isolation/connection.h"
#include "executors/pipeline/isolation/shared_memory.h"

namespace headrace::stage_host {
namespace {

using namespace executors::pipeline;
using namespace executors::pipeline::isolation;

constexpr int kLost = 1;  // exit code of a process whose pipeline has ended

// Ends the process when the pipeline's has ended, or has closed the connection and a call does not return. The process
// of the pipeline is watched as well as the connection, because another process that was forked from it may hold that.
void watch(int parent) {
  pollfd ends[2] = {{.fd = kConnection, .events = POLLRDHUP, .revents = 0},
                    {.fd = parent, .events = POLLIN, .revents = 0}};
  while (::poll(ends, parent < 0 ? 1 : 2, -1) < 0) {
  }
  if (ends[1].revents == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  ::_exit(kLost);
}

void start_watching(uint64_t parent) {
  const int descriptor = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(parent), 0));
  if (::getppid() != static_cast<pid_t>(parent)) ::_exit(kLost);  // its end came before
  std::thread(watch, descriptor).detach();
}

// The values of one call, in the memory.
class Call {
 public:
  Call(StageCode& code, uint64_t count, const ServeOptions& options)
      : code_(code),
        options_(options),
        is_batch_(count > 0),
        count_(is_batch_ ? count : 1),
        outputs_(code.outputs().size() * count_),
        errors_(is_batch_ ? count_ : 0),
        places_(outputs_.size()) {}

  void read(WireReader reader) {
    for (size_t i = 0; i < (is_batch_ ? code_.inputs().size() : 0); ++i) {
      const bool is_param = reader.take().as<bool>();
      sources_.push_back({.kind = is_param ? Source::Kind::param : Source::Kind::input, .index = i});
    }
    for (size_t i = 0; i < code_.inputs().size() * count_; ++i) inputs_.push_back(reader.take(!options_.copies_inputs));
    for (const Value& input : inputs_) arguments_.push_back(&input);
  }

  // Runs the code, and puts its outputs and the errors of requests. Returns the error of the call, or null.
  Ref<ErrorObj> run(WireWriter& writer) {
    for (size_t i = 0; i < outputs_.size(); ++i) place(i, writer);
    Ref<ErrorObj> error =
        is_batch_
            ? code_.run_batch(
                  {.count = count_, .sources = sources_, .inputs = arguments_, .outputs = outputs_, .errors = errors_})
            : code_.run(arguments_, outputs_);
    if (error) return error;
    for (size_t i = 0; i < outputs_.size(); ++i) fit(i);
    for (size_t i = 0; i < outputs_.size(); ++i) put_any(i, writer);
    for (const Ref<ErrorObj>& of_request : errors_) writer.put_error(of_request.get());
    return {};
  }

 private:
  const Port& port_of(size_t output) const { return code_.outputs()[output / count_]; }

  // Lets the code write an output with a type where the pipeline reads it.
  void place(size_t output, WireWriter& writer) {
    const Port& port = port_of(output);
    if (port.is_any) return;
    WireTensor& tensor = places_[output];
    tensor = writer.reserve(port.spec.dtype, port.spec.shape);
    outputs_[output] = Value(NDArray::view(tensor.data, tensor.shape, tensor.dtype));
  }

  // Gives an output with a type the shape that the code gave it.
  void fit(size_t output) const {
    const bool has_failed = is_batch_ && errors_[output % count_];
    if (port_of(output).is_any || has_failed) return;
    const NDArray made = outputs_[output].as<NDArray>();
    const WireTensor& tensor = places_[output];
    if (made.shape().size() != tensor.shape.size() || made.data<std::byte>() != tensor.data)
      throw_user_error("the code of the stage did not write its output '{}' where it should", port_of(output).name());
    WireWriter::cut(tensor, made.shape());
  }

  void put_any(size_t output, WireWriter& writer) {
    if (!port_of(output).is_any) return;
    const size_t size = writer.size();
    try {
      const bool has_failed = is_batch_ && errors_[output % count_];
      writer.put(has_failed ? Value() : outputs_[output]);
    } catch (...) {
      if (!is_batch_) throw;
      store_current_exception();
      errors_[output % count_] = take_stored_error();
      writer.rewind(size);
      writer.put(Value());
    }
  }

  StageCode& code_;
  const ServeOptions& options_;
  const bool is_batch_;
  const size_t count_;
  std::vector<Source> sources_ = {};
  std::vector<Value> inputs_ = {};
  std::vector<const Value*> arguments_ = {};
  std::vector<Value> outputs_;
  std::vector<Ref<ErrorObj>> errors_;
  std::vector<WireTensor> places_;
};

// Makes a call, and returns the answer to it.
Message answer_call(StageCode& code, const Message& call, std::span<std::byte> inputs, std::span<std::byte> outputs,
                    const ServeOptions& options) {
  Message answer{.kind = MessageKind::answer, .epoch = call.epoch, .sequence = call.sequence};
  Ref<ErrorObj> error;
  try {
    WireWriter writer(outputs, options.codec.get());
    Call made(code, call.count, options);
    made.read(WireReader(inputs.first(call.nbytes), options.codec.get()));
    error = made.run(writer);
    answer.nbytes = writer.size();
  } catch (...) {
    store_current_exception();
    error = take_stored_error();
  }
  if (!error) return answer;
  WireWriter writer(outputs, options.codec.get());
  writer.put_error(error.get());
  answer.nbytes = writer.size();
  answer.count = 1;
  return answer;
}

// Makes the code and tells the pipeline what it is; null when it cannot be made.
std::shared_ptr<StageCode> introduce(const MakeCode& make_code, SharedMemory& memory, uint64_t epoch,
                                     const ServeOptions& options) {
  Message message{.kind = MessageKind::ready, .epoch = epoch};
  std::shared_ptr<StageCode> code;
  try {
    code = make_code();
    WireWriter writer(memory.bytes(), options.codec.get());
    put_ports(writer, ports_of_code(*code));
    message.nbytes = writer.size();
  } catch (...) {
    store_current_exception();
    code = nullptr;
    WireWriter writer(memory.bytes(), options.codec.get());
    writer.put_error(take_stored_error().get());
    message.kind = MessageKind::failed;
    message.nbytes = writer.size();
  }
  send(kConnection, message);
  return code;
}

// Waits for a message of the pipeline; ends the process when the pipeline has ended, or sent another one.
Message await(MessageKind kind) {
  Message message;
  const Received received = receive(kConnection, message, {});
  if (received == Received::message && message.kind == kind) return message;
  std::exit(received == Received::ended ? 0 : kLost);
}

}  // namespace

int serve(const MakeCode& make_code, const ServeOptions& options) {
  SharedMemory memory{Descriptor(kMemory)};
  const Message hello = await(MessageKind::hello);
  start_watching(hello.count);
  const std::shared_ptr<StageCode> code = introduce(make_code, memory, hello.epoch, options);
  if (code == nullptr) return kLost;
  const Message start = await(MessageKind::start);
  memory.map();
  const std::span<std::byte> inputs = memory.bytes().first(start.nbytes);
  const std::span<std::byte> outputs = memory.bytes().subspan(start.nbytes, start.count);
  while (true) {
    Message call;
    if (receive(kConnection, call, {}) != Received::message || call.kind != MessageKind::call) return 0;
    if (!send(kConnection, answer_call(*code, call, inputs, outputs, options))) return 0;
  }
}

}  // namespace headrace::stage_host
