// Stages and pipelines for the tests of this room: whole numbers and small tensors pass through them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "executors/pipeline/pipeline.h"

namespace headrace::executors::pipeline::testing {

using namespace std::chrono_literals;

inline Port any_port(std::string name) {
  return {.spec = {.name = std::move(name), .dtype = {}, .shape = {}}, .is_any = true};
}
inline Port float_port(std::string name, std::vector<int64_t> shape) {
  return {.spec = {.name = std::move(name), .dtype = DataType::parse("float32"), .shape = std::move(shape)}};
}
inline Source from_input(size_t index) { return {.kind = Source::Kind::input, .index = index}; }
inline Source from_stage(size_t index, size_t port = 0) {
  return {.kind = Source::Kind::stage, .index = index, .port = port};
}
inline Source from_param(size_t index) { return {.kind = Source::Kind::param, .index = index}; }

// Makes a stage of a function of whole numbers.
template <typename F>
std::shared_ptr<StageCode> number_code(size_t num_inputs, F function) {
  std::vector<Port> inputs;
  for (size_t i = 0; i < num_inputs; ++i) inputs.push_back(any_port(fmt::format("x{}", i)));
  return make_function_stage(make_packed(std::move(function)), inputs, {any_port("y")});
}

inline StageSpec stage_of(std::string name, std::shared_ptr<StageCode> code, std::vector<Source> inputs, size_t group) {
  return {.name = std::move(name), .replicas = {std::move(code)}, .inputs = std::move(inputs), .group = group};
}

// Makes a chain in which every stage has a group of its own, or all are in one.
inline PipelineSpec chain_of(std::vector<std::shared_ptr<StageCode>> codes, bool share_group = false) {
  PipelineSpec spec{.inputs = {any_port("x")}};
  for (size_t i = 0; i < codes.size(); ++i) {
    spec.stages.push_back(stage_of(fmt::format("s{}", i), std::move(codes[i]),
                                   {i == 0 ? from_input(0) : from_stage(i - 1)}, share_group ? 0 : i));
    if (!share_group || i == 0) spec.groups.push_back({});
  }
  spec.outputs = {{.name = "y", .source = from_stage(spec.stages.size() - 1)}};
  return spec;
}

inline std::shared_ptr<StageCode> adder(int64_t amount) {
  return number_code(1, [amount](int64_t x) { return x + amount; });
}

// Holds calls back until the test opens it.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++num_arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  // Waits until so many calls have arrived.
  void await(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_arrived_ >= count; });
  }
  int num_arrived() {
    const std::lock_guard lock(mutex_);
    return num_arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int num_arrived_ = 0;
};

inline std::shared_ptr<StageCode> gated(Gate& gate, int64_t amount = 0) {
  return number_code(1, [&gate, amount](int64_t x) {
    gate.pass();
    return x + amount;
  });
}

inline int64_t number_of(const Ticket& ticket) { return ticket.results().at(0).as<int64_t>(); }
inline Until after(Clock::duration duration) { return Clock::now() + duration; }

// Returns the kind of the error that a call throws; empty when it throws none.
inline std::string kind_thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  return "";
}
inline std::string message_thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace headrace::executors::pipeline::testing
