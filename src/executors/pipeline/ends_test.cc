// How pipelines end: drained, stopped at any moment, forked, destroyed; and what must not be left.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <random>

#include "executors/pipeline/test_stages.h"
#include "kit/options.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;

size_t num_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// Whether no more threads than these are left. The system lists a thread that was joined for a moment longer.
bool come_down_to(size_t threads) {
  for (int i = 0; i < 500 && num_threads() > threads; ++i) std::this_thread::sleep_for(10ms);
  return num_threads() <= threads;
}

// Rule 11: drain finishes what there is, and takes no more.
TEST(PipelineEnds, DrainFinishesAll) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate), adder(1)}));
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 10; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  EXPECT_FALSE(pipeline.drain(after(2ms)));
  EXPECT_EQ(pipeline.state(), State::draining);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{0})}); }), "PipelineStopped");
  gate.open();
  EXPECT_TRUE(pipeline.drain());
  EXPECT_TRUE(pipeline.drain());
  EXPECT_EQ(pipeline.state(), State::stopped);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i + 1);
}

TEST(PipelineEnds, OutcomesCanBeReadAfterTheEnd) {
  Pipeline pipeline(chain_of({adder(1)}), {.max_inflight = 4});
  for (int64_t i = 0; i < 4; ++i) pipeline.push({Value(i)});
  EXPECT_TRUE(pipeline.drain());
  for (int64_t i = 0; i < 4; ++i) EXPECT_EQ(number_of(*pipeline.next()), i + 1);
  EXPECT_EQ(pipeline.next(), std::nullopt);
  EXPECT_EQ(pipeline.next_done(), std::nullopt);
}

// Rule 11: stop ends what waits, lets the call that runs end, and gives every ticket an outcome.
TEST(PipelineEnds, StopEndsAll) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate), adder(1)}));
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 10; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  gate.await(1);
  std::thread stopper([&] { EXPECT_TRUE(pipeline.stop().empty()); });
  for (const Ticket& ticket : tickets) {
    ASSERT_TRUE(ticket.wait(after(10s)));
    EXPECT_EQ(ticket.failure()->kind, FailureKind::stopped);
    EXPECT_EQ(kind_thrown([&] { ticket.results(); }), "Stopped");
  }
  gate.open();
  stopper.join();
  EXPECT_TRUE(pipeline.stop().empty());
  EXPECT_EQ(pipeline.state(), State::stopped);
  EXPECT_EQ(pipeline.metrics().stopped, 10U);
}

TEST(PipelineEnds, AWaitingSubmitAndReaderReturnAtTheEnd) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}), {.max_inflight = 1});
  const Ticket ticket = pipeline.submit({Value(int64_t{1})});
  std::string kind;
  std::thread submitter([&] { kind = kind_thrown([&] { pipeline.submit({Value(int64_t{2})}); }); });
  std::thread reader([&] { EXPECT_EQ(pipeline.next(), std::nullopt); });
  std::this_thread::sleep_for(5ms);
  std::thread stopper([&] { pipeline.stop(); });
  submitter.join();
  reader.join();
  EXPECT_EQ(kind, "PipelineStopped");
  gate.open();
  stopper.join();
}

TEST(PipelineEnds, StopFromAStageAndFromACallback) {
  std::unique_ptr<Pipeline> pipeline;
  std::atomic<bool> is_ready = false;
  auto code = number_code(1, [&](int64_t x) {
    while (!is_ready) std::this_thread::yield();
    pipeline->stop();
    return x;
  });
  pipeline = std::make_unique<Pipeline>(chain_of({std::move(code)}));
  is_ready = true;
  const Ticket ticket = pipeline->submit({Value(int64_t{1})});
  ASSERT_TRUE(ticket.wait(after(10s)));
  pipeline.reset();

  std::atomic<bool> is_called = false;
  Pipeline other(chain_of({adder(0)}));
  other.submit({Value(int64_t{1})}, {.on_done = [&](const Ticket&) {
                 other.stop();
                 is_called = true;
               }});
  while (!is_called) std::this_thread::yield();
  EXPECT_TRUE(other.stop().empty());
}

TEST(PipelineEnds, StopFromACallbackOfTheWatch) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}));
  std::atomic<bool> is_called = false;
  pipeline.submit({Value(int64_t{1})}, {.deadline = after(5ms), .on_done = [&](const Ticket&) {
                                          pipeline.stop();
                                          is_called = true;
                                        }});
  while (!is_called) std::this_thread::yield();
  gate.open();
  EXPECT_TRUE(pipeline.stop().empty());
}

// Rule 13: a pipeline that is drained by its own thread would wait for itself.
TEST(PipelineEnds, DrainFromAStageIsRefused) {
  Pipeline* self = nullptr;
  std::atomic<bool> is_ready = false;
  auto code = number_code(1, [&](int64_t x) {
    while (!is_ready) std::this_thread::yield();
    self->drain();
    return x;
  });
  Pipeline pipeline(chain_of({std::move(code)}));
  self = &pipeline;
  is_ready = true;
  EXPECT_THAT(message_thrown([&] { pipeline.submit({Value(int64_t{1})}).results(); }),
              ::testing::HasSubstr("cannot be drained by one of its own threads"));
}

// A drain does not wait for values that stay between the stages.
TEST(PipelineEnds, StopThenDrain) {
  Gate gate;
  Pipeline pipeline(chain_of({adder(0), gated(gate), adder(0)}));
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 6; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  gate.await(1);
  std::thread drainer([&] { EXPECT_FALSE(pipeline.drain()); });  // the stage's call has not returned
  while (pipeline.state() != State::draining) std::this_thread::yield();
  EXPECT_EQ(pipeline.stop(after(5ms)), std::vector<std::string>{"s1"});
  drainer.join();
  gate.open();
  EXPECT_TRUE(pipeline.stop().empty());
  EXPECT_TRUE(pipeline.drain());
}

TEST(PipelineEnds, TwoStopsAtOnce) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}));
  pipeline.submit({Value(int64_t{1})});
  gate.await(1);
  std::thread patient([&] { EXPECT_TRUE(pipeline.stop().empty()); });
  while (pipeline.state() != State::stopped) std::this_thread::yield();
  EXPECT_EQ(pipeline.stop(after(5ms)), std::vector<std::string>{"s0"});
  gate.open();
  patient.join();
}

TEST(PipelineEnds, AStageThatSubmitsToItsOwnFullPipelineIsRefused) {
  Pipeline* self = nullptr;
  std::atomic<bool> is_ready = false;
  auto code = number_code(1, [&](int64_t x) {
    while (!is_ready) std::this_thread::yield();
    self->submit({Value(x)});
    return x;
  });
  Pipeline pipeline(chain_of({std::move(code)}), {.max_inflight = 1});
  self = &pipeline;
  const Ticket ticket = pipeline.submit({Value(int64_t{1})});
  is_ready = true;
  EXPECT_THAT(message_thrown([&] { ticket.results(); }), ::testing::HasSubstr("the pipeline is full"));
}

// Rule 14: a forked child sees a stopped pipeline, and does not wait for threads that it does not have.
TEST(PipelineEnds, AForkedChildSeesAStoppedPipeline) {
  auto pipeline = std::make_unique<Pipeline>(chain_of({adder(1), adder(1)}));
  EXPECT_EQ(number_of(pipeline->submit({Value(int64_t{1})})), 3);
  // A deadline has a thread, too.
  const Ticket open = pipeline->submit({Value(int64_t{1})}, {.deadline = after(std::chrono::minutes(1))});
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_ended = open.wait() && (!open.failure() || open.failure()->kind == FailureKind::stopped);
    pipeline->reset();
    const bool is_right = is_ended && pipeline->metrics().stages.empty() && pipeline->state() == State::stopped &&
                          pipeline->stop().empty() && pipeline->next(after(1ms)) == std::nullopt &&
                          kind_thrown([&] { pipeline->submit({Value(int64_t{1})}); }) == "PipelineStopped";
    pipeline.reset();
    ::_exit(is_right ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(number_of(pipeline->submit({Value(int64_t{2})})), 4);
  EXPECT_EQ(number_of(open), 3);
}

// Threads and places come back.
TEST(PipelineEnds, MadeAndDestroyedAgainAndAgain) {
  const size_t before = num_threads();
  const int count = kit::case_count(300, 10000);
  for (int i = 0; i < count; ++i) {
    Pipeline pipeline(chain_of({adder(1), adder(1)}), {.max_inflight = 2});
    if (i % 2 != 0) continue;
    EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{i})})), i + 2);
  }
  EXPECT_TRUE(come_down_to(before)) << num_threads() << " threads, " << before << " before";
}

TEST(PipelineEnds, StoppedAtAnyMoment) {
  std::mt19937 random(17);
  const int count = kit::case_count(200, 1000);
  for (int i = 0; i < count; ++i) {
    Pipeline pipeline(chain_of({adder(1), adder(1), adder(1)}), {.max_inflight = 3});
    std::vector<Ticket> tickets;
    std::thread submitter([&] {
      try {
        for (int64_t n = 0; n < 1000; ++n) tickets.push_back(pipeline.submit({Value(n)}));
      } catch (const RefusedError&) {
      }
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    EXPECT_TRUE(pipeline.stop(after(30s)).empty());
    submitter.join();
    for (size_t n = 0; n < tickets.size(); ++n) {
      ASSERT_TRUE(tickets[n].wait(after(10s)));
      if (tickets[n].failure().has_value()) continue;
      ASSERT_EQ(number_of(tickets[n]), static_cast<int64_t>(n) + 3);
    }
    const PipelineMetrics metrics = pipeline.metrics();
    EXPECT_EQ(metrics.succeeded + metrics.stopped, tickets.size());
  }
}

// Everything at once: random failures, delays, deadlines and cancels, several callers; every other answer is right.
TEST(PipelineEnds, AStormOfFaults) {
  constexpr int kCallers = 4;
  const int64_t requests = kit::case_count(100'000, 1'000'000) / kCallers;
  const size_t threads_before = num_threads();
  const auto shaky = [](uint32_t seed) {
    auto random = std::make_shared<std::mt19937>(seed);
    return number_code(1, [random](int64_t x) {
      const auto draw = static_cast<uint32_t>((*random)() % 1000);
      if (draw < 10) throw_user_error("a planted fault");
      if (draw < 15) std::this_thread::sleep_for(200us);
      return x + 1;
    });
  };
  Pipeline pipeline(chain_of({shaky(1), shaky(2), shaky(3), shaky(4)}), {.max_inflight = 9, .failures_in_row = 0});
  std::atomic<uint64_t> right = 0, failed = 0, ended = 0;
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&, caller] {
      std::mt19937 random(static_cast<uint32_t>(100 + caller));
      std::vector<std::pair<int64_t, Ticket>> tickets;
      for (int64_t i = 0; i < requests; ++i) {
        const int64_t number = caller * 1'000'000 + i;
        const auto draw = static_cast<uint32_t>(random() % 100);
        tickets.emplace_back(number,
                             pipeline.submit({Value(number)}, {.deadline = draw == 0 ? after(300us) : Until()}));
        if (draw == 1) tickets.back().second.cancel();
      }
      for (const auto& [number, ticket] : tickets) {
        ticket.wait();
        const std::optional<Failure> failure = ticket.failure();
        if (!failure.has_value()) {
          right += number_of(ticket) == number + 4 ? 1 : 0;
        } else {
          ++(failure->kind == FailureKind::stage_failed ? failed : ended);
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(pipeline.drain(after(60s)));
  const PipelineMetrics metrics = pipeline.metrics();
  EXPECT_EQ(right + failed + ended, static_cast<uint64_t>(kCallers * requests));
  EXPECT_EQ(metrics.succeeded, right);
  EXPECT_EQ(metrics.failed, failed);
  EXPECT_EQ(metrics.cancelled + metrics.expired, ended);
  EXPECT_GE(failed, static_cast<uint64_t>(requests) / 10);  // each of four stages fails one request of a hundred
  EXPECT_EQ(metrics.in_flight, 0U);
  EXPECT_TRUE(come_down_to(threads_before)) << num_threads() << " threads, " << threads_before << " before";
}

// A reader of outcomes gets them in order, each once, with the right values.
TEST(PipelineEnds, AStormKeepsTheOrderOfOutcomes) {
  const int64_t requests = kit::case_count(20'000, 1'000'000);
  const auto shaky = [](uint32_t seed) {
    auto random = std::make_shared<std::mt19937>(seed);
    return number_code(1, [random](int64_t x) {
      if ((*random)() % 100 == 0) throw_user_error("a planted fault");
      return x + 1;
    });
  };
  Pipeline pipeline(chain_of({shaky(5), shaky(6), shaky(7)}), {.max_inflight = 20, .failures_in_row = 0});
  std::thread reader([&] {
    int64_t failed = 0;
    for (int64_t i = 0; i < requests; ++i) {
      const std::optional<Ticket> ticket = pipeline.next(after(60s));
      ASSERT_TRUE(ticket.has_value());
      ASSERT_EQ(static_cast<int64_t>(ticket->number()), i);
      if (ticket->failure().has_value()) {
        ++failed;
      } else {
        ASSERT_EQ(number_of(*ticket), i + 3);
      }
    }
    EXPECT_GE(failed, requests / 50);
  });
  std::mt19937 random(8);
  for (int64_t i = 0; i < requests; ++i)
    pipeline.push({Value(i)}, {.deadline = random() % 200 == 0 ? after(200us) : Until()});
  reader.join();
  EXPECT_TRUE(pipeline.drain(after(60s)));
}

}  // namespace
}  // namespace headrace::executors::pipeline
