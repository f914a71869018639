#include "executors/pipeline/isolation/process_stage.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/error.h"
#include "runtime/processors.h"

namespace headrace::executors::pipeline::isolation {
namespace {

constexpr std::string_view kLost = "StageLost", kTimeout = "StageTimeout";
constexpr auto kFirstPause = std::chrono::milliseconds(10), kLongestPause = std::chrono::milliseconds(1000);
constexpr uint64_t kSpareBytes = uint64_t{4} << 20;     // for what is said about values
constexpr uint64_t kMostOfError = uint64_t{256} << 10;  // per request, with its texts and what it carries
constexpr uint64_t kMostOfBatch = uint64_t{1} << 36;    // per call of many requests; a larger one is an error
constexpr uint64_t kMostOfRequest = uint64_t{1} << 44;  // all tensors of one request

Ref<ErrorObj> make_loss(std::string_view kind, std::string message) {
  Ref<ErrorObj> error = make_object<ErrorObj>();
  error->kind = kind;
  error->message = std::move(message);
  return error;
}

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

// Returns how long the next process waits after so many that ended in a row: nothing after the first.
Clock::duration pause_after(uint32_t losses) {
  if (losses <= 1) return {};
  return std::min<Clock::duration>(kFirstPause * (1 << std::min(losses - 2, 10U)), kLongestPause);
}

bool same_ports(const std::vector<Port>& a, const std::vector<Port>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Port& x, const Port& y) {
    return x.name() == y.name() && x.is_any == y.is_any && (x.is_any || fits(x, y));
  });
}

class ProcessStage final : public StageCode {
 public:
  ProcessStage(HostCommand command, const ProcessOptions& options) : command_(std::move(command)), options_(options) {
    if (!(options.time_limit_seconds >= 0 && options.time_limit_seconds <= kMaxRegionTimeout))
      throw_user_error("the time limit of a stage is {} seconds; it lies from 0 (none) to {}",
                       options.time_limit_seconds, kMaxRegionTimeout);
    ports_ = start();
    prepare_memory();
  }

  const std::vector<Port>& inputs() const override { return ports_.inputs; }
  const std::vector<Port>& outputs() const override { return ports_.outputs; }
  int32_t most_in_batch() const override { return ports_.most_in_batch; }
  bool is_shared(size_t input) const override { return ports_.are_shared[input]; }
  bool is_program() const override { return options_.is_program; }
  // The process has its weights for itself.
  void add_memory(MemoryUse& memory) const override { memory.working_bytes += ports_.memory_bytes; }

  std::vector<FallbackEvent> fallbacks() const override { return ports_.fallbacks; }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    return call({.count = 1, .sources = {}, .inputs = inputs, .outputs = outputs, .errors = {}});
  }
  Ref<ErrorObj> run_batch(const BatchCall& batch) noexcept override { return call(batch); }

  FailureKind failure_kind(const ErrorObj& error) const noexcept override {
    return error.kind == kLost      ? FailureKind::stage_lost
           : error.kind == kTimeout ? FailureKind::stage_timeout
                                    : FailureKind::stage_failed;
  }
  std::optional<CodeProcess> process() const override {
    return CodeProcess{.pid = pid_.load(std::memory_order_relaxed),
                       .restarts = restarts_.load(std::memory_order_relaxed)};
  }

  bool interrupt() noexcept override {
    const std::shared_ptr<HostProcess> host = [&] {
      const std::lock_guard lock(host_mutex_);
      is_interrupted_.store(1);
      return host_;
    }();
    futex_wake(is_interrupted_, 1);
    if (host != nullptr) host->kill();
    return true;
  }
  void release() noexcept override {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) set_host(nullptr);  // else another pipeline uses it
  }

 private:
  // ---- The process.

  void set_host(std::shared_ptr<HostProcess> host) {
    pid_.store(host == nullptr ? 0 : host->pid(), std::memory_order_relaxed);
    {
      const std::lock_guard lock(host_mutex_);
      std::swap(host_, host);
    }
  }

  // Starts a process, and returns what its code is.
  CodePorts start() {
    ++epoch_;
    set_host(std::make_shared<HostProcess>(command_));
    if (is_interrupted_.load() != 0) host_->kill();
    const Clock::time_point until = Clock::now() + seconds(options_.start_seconds);
    Message message{.kind = MessageKind::hello, .epoch = epoch_, .count = static_cast<uint64_t>(::getpid())};
    send(host_->connection(), message);
    const Received received = receive(host_->connection(), message, until);
    if (received == Received::timeout) give_up(fmt::format("was not ready after {} seconds", options_.start_seconds));
    if (received == Received::ended) give_up(host_->end());
    const bool is_known = received == Received::message && message.epoch == epoch_ && message.nbytes <= kFirstBytes &&
                          (message.kind == MessageKind::ready || message.kind == MessageKind::failed);
    if (!is_known) give_up("sent a message that no stage sends");
    WireReader reader(host_->memory().bytes().first(message.nbytes), options_.codec.get());
    try {
      if (message.kind == MessageKind::ready) return take_ports(reader);
      if (const Ref<ErrorObj> error = reader.take_error()) throw UserError(error->message);
    } catch (const Error& error) {
      set_host(nullptr);
      throw_user_error("a stage in a process of its own cannot start: {}", error.message());
    }
    give_up("failed without an error");
  }

  [[noreturn]] void give_up(const std::string& why) {
    set_host(nullptr);
    throw_user_error("the process of the stage, '{}', {} before it took requests", command_.words[0], why);
  }

  // Gives the memory its size, and lets the process wait for calls.
  void prepare_memory() {
    input_bytes_ = bytes_of(ports_.inputs);
    output_bytes_ = bytes_of(ports_.outputs);
    host_->memory().grow(input_bytes_ + output_bytes_);
    send(host_->connection(),
         {.kind = MessageKind::start, .epoch = epoch_, .nbytes = input_bytes_, .count = output_bytes_});
  }

  // Returns the most bytes that the values of a call take. What a call does not use takes no memory.
  uint64_t bytes_of(const std::vector<Port>& ports) const {
    uint64_t of_request = 0;
    bool has_any = false;
    for (const Port& port : ports) {
      has_any |= port.is_any;
      of_request += port.is_any ? 0 : *wire_nbytes(port.spec);
      if (of_request > kMostOfRequest) throw_user_error("the tensors of the stage are larger than any memory");
    }
    const auto requests = static_cast<uint64_t>(std::max(ports_.most_in_batch, 1));
    const uint64_t of_call = std::max(of_request, std::min(of_request * requests, kMostOfBatch));
    const uint64_t of_errors = requests * kMostOfError;
    return of_call + (has_any ? (options_.most_bytes + 63) / 64 * 64 : 0) + of_errors + kSpareBytes;
  }

  // Starts the process if there is none. Returns null, or why a call cannot be made now.
  Ref<ErrorObj> start_again() {
    if (host_ != nullptr) return {};
    if (losses_ > options_.most_restarts && Clock::now() < next_start_)
      return make_loss(kLost, fmt::format("its process has ended {} times in a row, and is not started again yet; "
                                          "the last one {}",
                                          losses_, last_end_));
    while (Clock::now() < next_start_ && is_interrupted_.load() == 0) futex_wait(is_interrupted_, 0, next_start_);
    if (is_interrupted_.load() != 0) return make_loss(kLost, "its pipeline was stopped");
    try {
      const CodePorts found = start();
      if (!same_ports(found.inputs, ports_.inputs) || !same_ports(found.outputs, ports_.outputs) ||
          found.most_in_batch != ports_.most_in_batch || found.are_shared != ports_.are_shared)
        give_up("has other inputs or outputs than the one before, and ended");
      prepare_memory();
    } catch (const UserError& error) {
      note_loss(error.message());
      return make_loss(kLost, error.message());
    }
    if (losses_ > 0) restarts_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }

  void note_loss(const std::string& how) {
    last_end_ = how;
    ++losses_;
    next_start_ = Clock::now() + pause_after(losses_);
  }

  // Ends the process after a call that did not return; returns the error of that call.
  Ref<ErrorObj> lose(std::string_view kind, const std::string& before) {
    const std::string how = before.empty() ? host_->end() : before;
    if (!before.empty()) static_cast<void>(host_->end());
    set_host(nullptr);
    note_loss(how);
    return make_loss(kind, fmt::format("its process {}", how));
  }

  // ---- Calls.

  Ref<ErrorObj> call(const BatchCall& batch) noexcept {
    try {
      const std::lock_guard lock(mutex_);
      if (process_ != runtime::process_generation())
        throw_user_error("a stage in a process of its own does not work in a process forked since it was made");
      is_interrupted_.store(0);
      const struct Cleared {
        std::vector<Value>& values;
        ~Cleared() { values.clear(); }
      } cleared{memory_};
      memory_.assign(batch.outputs.begin(), batch.outputs.end());
      return call_until_answered(batch);
    } catch (...) {
      store_current_exception();
      return take_stored_error();
    }
  }

  // Calls a pure function again where its process ends. A call that did not begin, because the process had ended while
  // it rested, is made once more in any case. All ends of the process in one call count as one.
  Ref<ErrorObj> call_until_answered(const BatchCall& batch) {
    const uint32_t losses_before = losses_;
    int left = options_.is_pure ? kMostReplays : 0;
    bool was_at_rest = false;
    while (true) {
      has_begun_ = false;
      Ref<ErrorObj> error = start_again();
      if (!error) error = exchange(batch);
      if (!error) return error;
      losses_ = std::min(losses_, losses_before + 1);
      if (error->kind != kLost || is_interrupted_.load() != 0) return error;
      const bool is_first_rest = !has_begun_ && !was_at_rest;
      was_at_rest |= is_first_rest;
      if (!is_first_rest && --left < 0) return error;
    }
  }

  // Makes one call. Returns null, or its error.
  Ref<ErrorObj> exchange(const BatchCall& batch) {
    const size_t used = put_inputs(batch);
    const Until until =
        options_.time_limit_seconds > 0 ? Until(Clock::now() + seconds(options_.time_limit_seconds)) : Until();
    const uint64_t count = ports_.most_in_batch > 0 ? batch.count : 0;
    if (!send(host_->connection(),
              {.kind = MessageKind::call, .epoch = epoch_, .sequence = ++sequence_, .nbytes = used, .count = count}))
      return lose(kLost, "");
    has_begun_ = true;
    while (true) {
      Message answer;
      switch (receive(host_->connection(), answer, until)) {
        case Received::timeout:
          return lose(kTimeout, fmt::format("took longer than its time limit of {} seconds, and was killed",
                                            options_.time_limit_seconds));
        case Received::ended:
          return lose(kLost, "");
        case Received::malformed:
          return lose(kLost, "sent a message that no stage sends, and was killed");
        case Received::message:
          break;
      }
      const bool is_stale = answer.kind == MessageKind::answer &&
                            (answer.epoch < epoch_ || (answer.epoch == epoch_ && answer.sequence < sequence_));
      if (!is_stale) return take_answer(batch, answer);
    }
  }

  size_t put_inputs(const BatchCall& batch) {
    WireWriter writer(host_->memory().bytes().first(input_bytes_), options_.codec.get());
    for (const Source& source : batch.sources) writer.put(Value(source.kind == Source::Kind::param));
    for (const Value* input : batch.inputs) writer.put(*input);
    return writer.size();
  }

  Ref<ErrorObj> take_answer(const BatchCall& batch, const Message& answer) {
    const bool is_ours = answer.kind == MessageKind::answer && answer.epoch == epoch_ && answer.sequence == sequence_ &&
                         answer.nbytes <= output_bytes_;
    if (!is_ours) return lose(kLost, "answered a call that was not made, and was killed");
    Ref<ErrorObj> error;
    try {
      WireReader reader(host_->memory().bytes().subspan(input_bytes_, answer.nbytes), options_.codec.get());
      if (answer.count == 0) {
        take_outputs(batch, reader);
      } else if (error = reader.take_error(); !error) {
        throw_user_error("it has no error");
      }
    } catch (const Error& malformed) {
      return lose(kLost, fmt::format("gave an answer that cannot be read ({}), and was killed", malformed.message()));
    }
    losses_ = 0;
    return as_code_error(std::move(error));
  }

  // The code's own errors are failures of their requests, whatever they are called.
  static Ref<ErrorObj> as_code_error(Ref<ErrorObj> error) {
    if (error && (error->kind == kLost || error->kind == kTimeout)) error->kind = "UserError";
    return error;
  }

  void take_outputs(const BatchCall& batch, WireReader& reader) {
    for (const bool is_any : {false, true}) {
      for (size_t i = 0; i < batch.outputs.size(); ++i) {
        const Port& port = ports_.outputs[i / batch.count];
        if (port.is_any != is_any) continue;
        batch.outputs[i] = is_any ? reader.take() : take_tensor(reader.take_tensor(), port, memory_[i].as<NDArray>());
      }
    }
    for (Ref<ErrorObj>& error : batch.errors) error = as_code_error(reader.take_error());
  }

  // Copies a tensor to the memory of an output, which is cut to its shape if that is smaller.
  static Value take_tensor(const WireTensor& tensor, const Port& port, const NDArray& whole) {
    const std::vector<int64_t>& most = port.spec.shape;
    const bool fits = tensor.dtype == port.spec.dtype && tensor.shape.size() == most.size() &&
                      std::equal(most.begin(), most.end(), tensor.shape.begin(), std::greater_equal<>());
    if (!fits)
      throw_user_error("output '{}' is {} ({}), not {}", port.name(), tensor.dtype, fmt::join(tensor.shape, ", "),
                       type_text(port));
    std::memcpy(whole.data<std::byte>(), tensor.data, tensor.nbytes);
    if (tensor.shape == most) return Value(whole);
    return Value(NDArray::view(whole.data<std::byte>(), tensor.shape, tensor.dtype, [whole] {}));
  }

  const HostCommand command_;
  const ProcessOptions options_;
  const uint64_t process_ = runtime::process_generation();
  CodePorts ports_;
  std::mutex mutex_;  // one call at a time; guards what follows
  uint64_t epoch_ = 0, sequence_ = 0;
  uint64_t input_bytes_ = 0, output_bytes_ = 0;
  uint32_t losses_ = 0;     // calls in which the process ended since the last one that returned
  bool has_begun_ = false;  // the process got the call
  Clock::time_point next_start_{};
  std::string last_end_;
  std::vector<Value> memory_;  // outputs of the call
  // Written under both mutexes, so that a call reads it under its own, and interrupt() under this one.
  std::mutex host_mutex_;
  std::shared_ptr<HostProcess> host_;
  std::atomic<uint32_t> is_interrupted_ = 0;
  std::atomic<int> pid_ = 0;
  std::atomic<uint64_t> restarts_ = 0;
};

}  // namespace

std::shared_ptr<StageCode> make_process_stage(HostCommand command, const ProcessOptions& options) {
  return std::make_shared<ProcessStage>(std::move(command), options);
}

}  // namespace headrace::executors::pipeline::isolation
