// Passes requests through a chain of stages that do nothing, by one thread: to count what one more stage costs.
#pragma once

#include <optional>

#include "executors/pipeline/flow.h"
#include "kit/count_instructions.h"

namespace headrace::kit {

namespace pipe = executors::pipeline;

// A stage that does nothing; its output is whatever memory the pipeline gives it.
class EmptyStage : public pipe::StageCode {
 public:
  explicit EmptyStage(const pipe::Port& port) : inputs_{port}, outputs_{port} {
    inputs_[0].spec.name = "x";
    outputs_[0].spec.name = "y";
  }
  const std::vector<pipe::Port>& inputs() const override { return inputs_; }
  const std::vector<pipe::Port>& outputs() const override { return outputs_; }
  Ref<ErrorObj> run(std::span<const Value* const>, std::span<Value>) noexcept override { return {}; }

 private:
  std::vector<pipe::Port> inputs_, outputs_;
};

// Makes a chain of stages, all in one group, or each in one of its own.
inline pipe::PipelineSpec chain_spec(const std::vector<std::shared_ptr<pipe::StageCode>>& codes, bool is_one_group) {
  pipe::PipelineSpec spec{.inputs = {codes[0]->inputs()[0]}};
  for (size_t i = 0; i < codes.size(); ++i)
    spec.stages.push_back({.name = "s" + std::to_string(i),
                           .replicas = {codes[i]},
                           .inputs = {i == 0 ? pipe::Source{.kind = pipe::Source::Kind::input}
                                             : pipe::Source{.kind = pipe::Source::Kind::stage, .index = i - 1}},
                           .group = is_one_group ? 0 : i});
  spec.outputs = {{.name = "y", .source = {.kind = pipe::Source::Kind::stage, .index = codes.size() - 1}}};
  spec.groups.resize(is_one_group ? 1 : codes.size());
  return spec;
}

// The flow of a pipeline without its threads. The thread that calls pass() takes the part of each group in turns; no
// group sleeps, so that wakes find it awake.
class HopHarness {
 public:
  HopHarness(size_t num_stages, bool is_one_group) : parkers_(is_one_group ? 1 : num_stages) {
    const pipe::Port port{.spec = {.name = "x", .dtype = {}, .shape = {}}, .is_any = true};
    std::vector<std::shared_ptr<pipe::StageCode>> codes(num_stages);
    for (std::shared_ptr<pipe::StageCode>& code : codes) code = std::make_shared<EmptyStage>(port);
    const pipe::PipelineSpec spec = chain_spec(codes, is_one_group);
    pipe::FlowEvents events{.next_request = [this] { return next(); },
                            .see_queue = [](const auto&) {},
                            .leave = [this](const std::shared_ptr<pipe::Request>& request) { leave(*request); },
                            .stage_failed = [](pipe::Stage&, const pipe::Failure&) {},
                            .stage_worked = [](pipe::Stage&) {},
                            .wake = [this](size_t group) { parkers_[group].wake(); }};
    flow_ = std::make_unique<pipe::Flow>(spec, pipe::check_spec(spec), pipe::FlowRoom{kPlaces, size_t{256} << 10},
                                         std::move(events));
  }

  // Makes so many requests for pass().
  void make_requests(size_t count) {
    for (size_t i = 0; i < count; ++i)
      requests_.push_back(std::make_shared<pipe::Request>(std::vector<Value>{Value(int64_t{1})}, 1));
  }
  // Passes the requests that were made since the last call through all stages. They live on, so that no memory is taken
  // or given back.
  void pass() {
    pipe::Clock::time_point now = pipe::Clock::now();
    while (num_passed_ < requests_.size()) {
      for (size_t begin = 0; begin < flow_->stages().size();) begin = run_group(begin, now);
    }
  }

 private:
  static constexpr size_t kPlaces = 64;

  std::shared_ptr<pipe::Request> next() { return num_begun_ < requests_.size() ? requests_[num_begun_++] : nullptr; }
  void leave(pipe::Request& request) {
    request.decide();
    ++num_passed_;
  }
  // Runs the stages of the group that begins with that stage until none can work. Returns the first of the next group.
  size_t run_group(size_t begin, pipe::Clock::time_point& now) {
    const std::vector<std::unique_ptr<pipe::Stage>>& stages = flow_->stages();
    size_t end = begin;
    while (end < stages.size() && stages[end]->spec.group == stages[begin]->spec.group) ++end;
    for (bool has_worked = true; has_worked;) {
      has_worked = false;
      for (size_t i = begin; i < end; ++i) has_worked |= flow_->run_next(*stages[i], *stages[i]->replicas[0], now);
    }
    return end;
  }

  std::vector<pipe::Parker> parkers_;
  std::unique_ptr<pipe::Flow> flow_;
  std::vector<std::shared_ptr<pipe::Request>> requests_;
  size_t num_begun_ = 0, num_passed_ = 0;
};

// Returns the instructions of one more empty stage for a request of a stream; nothing where they cannot be counted. The
// requests' own costs, and those of the begin and the end, cancel out. Compile it with optimisation.
inline std::optional<double> count_hop(bool is_one_group) {
  constexpr size_t kFew = 1, kMany = 3, kRequests = 24;
  const auto count = [&](size_t num_stages) {
    std::optional<HopHarness> harness;
    return count_instructions(
        [&] {
          harness.emplace(num_stages, is_one_group);
          harness->make_requests(kRequests);
          harness->pass();  // the first calls look symbols up
          harness->make_requests(kRequests);
        },
        [&] { harness->pass(); });
  };
  const std::optional<int64_t> few = count(kFew), many = count(kMany);
  if (!few || !many) return {};
  return static_cast<double>(*many - *few) / static_cast<double>((kMany - kFew) * kRequests);
}

}  // namespace headrace::kit
