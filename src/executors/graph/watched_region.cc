#include "executors/graph/watched_region.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "artifact/tensor_extent.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "runtime/aligned_buffer.h"
#include "runtime/processors.h"

namespace headrace::executors {

namespace {

// A tensor of the thread's own, of the type of another.
struct Copy {
  runtime::AlignedBuffer memory;
  std::vector<int64_t> shape, strides;
  DLTensor tensor{};
  size_t nbytes = 0;

  explicit Copy(const DLTensor& like) : shape(like.shape, like.shape + like.ndim), tensor(like) {
    nbytes = static_cast<size_t>(artifact::tensor_nbytes(DataType(like.dtype), shape).value());
    if (like.strides != nullptr) strides.assign(like.strides, like.strides + like.ndim);
    memory = runtime::AlignedBuffer(static_cast<int64_t>(nbytes));
    tensor.data = memory.data();
    tensor.byte_offset = 0;
    tensor.shape = shape.data();
    tensor.strides = like.strides == nullptr ? nullptr : strides.data();
  }
  void read(const DLTensor& from) const noexcept {
    if (nbytes > 0) std::memcpy(tensor.data, static_cast<const std::byte*>(from.data) + from.byte_offset, nbytes);
  }
  void write(const DLTensor& to) const noexcept {
    if (nbytes > 0) std::memcpy(static_cast<std::byte*>(to.data) + to.byte_offset, tensor.data, nbytes);
  }
};

}  // namespace

// Shared with the thread: it outlives the region when that is given up.
struct WatchedRegion::State {
  WatchedCode code;
  runtime::AlignedBuffer workspace;
  std::vector<std::unique_ptr<Copy>> copies;
  std::vector<DLTensor*> args;
  size_t num_outputs;
  hr_kernel_env env{};
  RegionOutcome outcome;

  std::mutex mutex;
  std::condition_variable changed;
  bool is_asked = false, is_done = false, is_stopping = false, is_given_up = false;
  bool was_interrupted = false;  // the reason why it is given up
  std::thread thread;
  const uint64_t process = runtime::process_generation();

  State(WatchedCode given, std::span<DLTensor* const> like, size_t outputs)
      : code(std::move(given)), workspace(code.workspace_bytes * code.pool->num_workers()), num_outputs(outputs) {
    for (const DLTensor* tensor : like) {
      copies.push_back(std::make_unique<Copy>(*tensor));
      args.push_back(&copies.back()->tensor);
    }
    env = {.size = sizeof(hr_kernel_env),
           .version = HR_KERNEL_ABI_VERSION,
           .workspace = workspace.data(),
           .workspace_size = static_cast<uint64_t>(code.workspace_bytes),
           .parallel_for = &runtime::ThreadPool::parallel_for_entry,
           .launch = nullptr,
           .stream = nullptr,
           .worker_index = 0,
           .num_workers = code.pool->num_workers(),
           .message = outcome.message.data(),
           .message_size = outcome.message.size(),
           .host = code.pool.get()};
  }
};

void WatchedRegion::work(const std::shared_ptr<State>& state) noexcept {
  std::unique_lock lock(state->mutex);
  while (true) {
    state->changed.wait(lock, [&] { return state->is_asked || state->is_stopping; });
    if (state->is_stopping) return;
    lock.unlock();
    state->code.run(state->env, state->args.data(), state->outcome);
    lock.lock();
    if (state->is_given_up) return;
    state->is_asked = false;
    state->is_done = true;
    state->changed.notify_all();
  }
}

WatchedRegion::WatchedRegion(WatchedCode code, std::span<DLTensor* const> args, size_t num_outputs)
    : state_(std::make_shared<State>(std::move(code), args, num_outputs)) {
  try {
    state_->thread = std::thread(&WatchedRegion::work, state_);
  } catch (const std::system_error& error) {
    throw_user_error("a thread for a region with a time limit cannot be started: {}", error.what());
  }
}

WatchedRegion::~WatchedRegion() {
  if (state_->process != runtime::process_generation()) {
    runtime::drop_thread_of_parent(state_->thread);
    return;
  }
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->is_given_up) return;
    state_->is_stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

// Waits for the thread, whose mutex `lock` holds. Returns whether its code has returned in time. Where the caller is
// interrupted, it waits no longer, and `interrupt` is what was thrown.
bool WatchedRegion::wait(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds limit,
                         Ref<ErrorObj>& interrupt) noexcept {
  constexpr std::chrono::milliseconds kBetweenPolls{25};
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto next = std::min(deadline, std::chrono::steady_clock::now() + kBetweenPolls);
    if (state_->changed.wait_until(lock, next, [&] { return state_->is_done; })) return true;
    if (next == deadline) return false;
    lock.unlock();
    try {
      poll_interrupt();
    } catch (...) {
      store_current_exception();
      interrupt = take_stored_error();
    }
    lock.lock();
    if (interrupt) return state_->is_done;
  }
}

RegionOutcome WatchedRegion::interrupted_before() noexcept {
  RegionOutcome outcome{.code = -1};
  outcome.message.write("the backend's code did not return before a run was interrupted, and is not called again");
  outcome.message.end();
  return outcome;
}

std::optional<RegionOutcome> WatchedRegion::run(std::span<DLTensor* const> args,
                                                std::chrono::nanoseconds limit) noexcept {
  State& state = *state_;
  if (state.process != runtime::process_generation()) {
    state.outcome = {};
    state.code.run(state.env, args.data(), state.outcome);
    state.outcome.message.end();
    return std::move(state.outcome);
  }
  const size_t num_inputs = args.size() - state.num_outputs;
  std::unique_lock lock(state.mutex);
  if (state.is_given_up && state.was_interrupted) return interrupted_before();
  if (state.is_given_up) return std::nullopt;
  for (size_t i = 0; i < num_inputs; ++i) state.copies[i]->read(*args[i]);
  state.outcome.code = 0;
  state.outcome.error = {};
  state.outcome.message.clear();
  state.is_done = false;
  state.is_asked = true;
  state.changed.notify_all();
  Ref<ErrorObj> interrupt;
  if (!wait(lock, limit, interrupt)) {
    state.is_given_up = true;
    state.was_interrupted = static_cast<bool>(interrupt);
    state.thread.detach();
    if (!interrupt) return std::nullopt;
    return RegionOutcome{.code = -1, .error = std::move(interrupt)};
  }
  if (interrupt) return RegionOutcome{.code = -1, .error = std::move(interrupt)};  // the code returned meanwhile
  state.outcome.message.end();
  for (size_t i = num_inputs; i < args.size() && state.outcome.code == 0; ++i) state.copies[i]->write(*args[i]);
  return std::move(state.outcome);
}

}  // namespace headrace::executors
