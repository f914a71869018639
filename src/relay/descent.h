// Recursive descent without the call stack: a Nested<T> is a coroutine whose frame is on the heap. `co_await` on one
// runs it to its end before going on, as a call would; exceptions pass through as through a call. Nesting is bounded,
// far above what programs have, so that hostile text cannot take all memory.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <vector>

#include "base/error.h"

namespace headrace::relay {

inline constexpr size_t kMaxNesting = 600'000;

// How deep a descent may nest, and what to say of one that nests deeper.
struct NestingLimit {
  size_t frames = kMaxNesting;
  const char* fault = "the text nests too deeply";
};

// The frames that wait for each other, the innermost last.
class Descent {
 public:
  explicit Descent(NestingLimit limit) : limit_(limit) {}
  // Pushes a frame; returns false, without running it, when the nesting is too deep.
  bool push(std::coroutine_handle<> frame) {
    if (frames_.size() >= limit_.frames) return false;
    frames_.push_back(frame);
    return true;
  }
  void run(std::coroutine_handle<> root) {
    push(root);
    while (!frames_.empty()) {
      const std::coroutine_handle<> top = frames_.back();
      top.resume();
      if (top.done()) frames_.pop_back();
    }
  }
  const NestingLimit& limit() const { return limit_; }

 private:
  NestingLimit limit_;
  std::vector<std::coroutine_handle<>> frames_;
};

template <typename T>
class [[nodiscard]] Nested {
 public:
  struct promise_type {
    Descent* descent = nullptr;
    std::optional<T> value;
    std::exception_ptr error;

    Nested get_return_object() { return Nested(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void unhandled_exception() { error = std::current_exception(); }
    void return_value(T result) { value = std::move(result); }
  };

  Nested(Nested&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Nested& operator=(Nested&&) = delete;
  ~Nested() {
    if (frame_) frame_.destroy();
  }

  // Runs it from ordinary code.
  T run(NestingLimit limit = {}) {
    Descent descent(limit);
    frame_.promise().descent = &descent;
    descent.run(frame_);
    return await_resume();
  }

  bool await_ready() const noexcept { return false; }
  template <typename Promise>
  bool await_suspend(std::coroutine_handle<Promise> parent) {
    frame_.promise().descent = parent.promise().descent;
    if (frame_.promise().descent->push(frame_)) return true;
    frame_.promise().error = std::make_exception_ptr(UserError(frame_.promise().descent->limit().fault));
    return false;
  }
  T await_resume() {
    if (frame_.promise().error) std::rethrow_exception(frame_.promise().error);
    return std::move(*frame_.promise().value);
  }

 private:
  explicit Nested(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
  std::coroutine_handle<promise_type> frame_;
};

}  // namespace headrace::relay
