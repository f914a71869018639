// Requests that fail, expire, are cancelled, or reach a stage that hangs.
#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::shared_ptr<StageCode> failing_at(std::function<bool(int64_t)> is_bad, std::atomic<int>* calls = nullptr) {
  return number_code(1, [is_bad = std::move(is_bad), calls](int64_t x) {
    if (calls != nullptr) ++*calls;
    if (is_bad(x)) throw_user_error("{} is bad", x);
    return x;
  });
}

// Rule 6: neighbours are untouched, order holds, later stages skip the failed request.
TEST(PipelineFailures, AFailedRequestTouchesNoOther) {
  std::atomic<int> calls = 0;
  PipelineSpec spec = chain_of(
      {adder(0), failing_at([](int64_t x) { return x % 10 == 3; }), failing_at([](int64_t) { return false; }, &calls)});
  spec.stages[1].backend = "onednn";
  Pipeline pipeline(std::move(spec), {.max_inflight = 6, .failures_in_row = 0});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 200; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (int64_t i = 0; i < 200; ++i) {
    const Ticket& ticket = tickets[static_cast<size_t>(i)];
    ticket.wait();
    if (i % 10 != 3) {
      ASSERT_EQ(number_of(ticket), i);
      continue;
    }
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_EQ(ticket.failure()->stage, "s1");
    EXPECT_EQ(ticket.failure()->backend, "onednn");
    EXPECT_EQ(ticket.failure()->request, static_cast<uint64_t>(i));
    EXPECT_THAT(message_thrown([&] { ticket.results(); }),
                ::testing::StartsWith(fmt::format("request {} failed in stage 's1' (onednn): {} is bad", i, i)));
    EXPECT_EQ(kind_thrown([&] { ticket.results(); }), "StageFailed");
  }
  EXPECT_EQ(calls, 180);
  const PipelineMetrics metrics = pipeline.metrics();
  EXPECT_EQ(metrics.failed, 20U);
  EXPECT_EQ(metrics.stages[1].errors, 20U);
  EXPECT_EQ(metrics.stages[2].skipped, 20U);
}

TEST(PipelineFailures, TheQueueOfOutcomesHasFailuresInOrder) {
  Pipeline pipeline(chain_of({failing_at([](int64_t x) { return x == 1; }), adder(0)}));
  for (int64_t i = 0; i < 3; ++i) pipeline.push({Value(i)});
  EXPECT_EQ(number_of(*pipeline.next()), 0);
  const std::optional<Ticket> failed = pipeline.next();
  ASSERT_TRUE(failed.has_value());
  EXPECT_EQ(failed->failure()->kind, FailureKind::stage_failed);
  EXPECT_EQ(number_of(*pipeline.next()), 2);
}

// A branch of a request that failed in the other branch gives it the first failure only.
TEST(PipelineFailures, TwoBranchesFailOnce) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}, {}}};
  const auto bad = [] { return failing_at([](int64_t) { return true; }); };
  spec.stages = {
      stage_of("a", bad(), {from_input(0)}, 0), stage_of("b", bad(), {from_input(0)}, 1),
      stage_of("c", number_code(2, [](int64_t x, int64_t y) { return x + y; }), {from_stage(0), from_stage(1)}, 2)};
  spec.outputs = {{.name = "y", .source = from_stage(2)}};
  Pipeline pipeline(std::move(spec), {.failures_in_row = 0});
  for (int64_t i = 0; i < 100; ++i) {
    const Ticket ticket = pipeline.submit({Value(i)});
    ticket.wait();
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_THAT(ticket.failure()->stage, ::testing::AnyOf("a", "b"));
  }
  EXPECT_EQ(pipeline.metrics().failed, 100U);
}

TEST(PipelineFailures, WrongResultsOfFunctionsAreErrorsOfTheirStage) {
  const auto run = [](std::vector<Port> outputs, PackedFunc function) {
    PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
    spec.stages = {stage_of("f", make_function_stage(std::move(function), {any_port("x")}, std::move(outputs)),
                            {from_input(0)}, 0)};
    spec.outputs = {{.name = "y", .source = from_stage(0)}};
    Pipeline pipeline(std::move(spec));
    return message_thrown([&] { pipeline.submit({Value(int64_t{1})}).results(); });
  };
  EXPECT_THAT(run({float_port("y", {2})}, make_packed([](int64_t x) { return x; })),
              HasSubstr("the function returned a int for output 'y', which is float32 (2)"));
  EXPECT_THAT(
      run({float_port("y", {2})}, make_packed([](int64_t) { return NDArray::zeros({3}, DataType::parse("float32")); })),
      HasSubstr("the function's output 'y' has shape (3)"));
  EXPECT_THAT(run({any_port("y"), any_port("z")}, make_packed([](int64_t x) { return x; })),
              HasSubstr("the function returned a int; the stage has 2 outputs"));
  EXPECT_THAT(run({any_port("y"), any_port("z")}, make_packed([](int64_t x) { return Array<Value>{Value(x)}; })),
              HasSubstr("the function returned 1 values; the stage has 2 outputs"));
}

// Rule 7: a stage that fails again and again makes submissions fail at once, until a probe succeeds.
TEST(PipelineFailures, ABrokenStageIsNotedAndProbed) {
  std::atomic<bool> is_bad = true;
  Pipeline pipeline(chain_of({failing_at([&](int64_t) { return is_bad.load(); })}),
                    {.failures_in_row = 3, .probe_seconds = 0.3});
  for (int64_t i = 0; i < 3; ++i) pipeline.submit({Value(i)}).wait();
  EXPECT_EQ(pipeline.state(), State::degraded);
  EXPECT_THAT(message_thrown([&] { pipeline.submit({Value(int64_t{3})}); }),
              HasSubstr("stage 's0' does not work: request 2 failed in stage 's0': 2 is bad"));
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{3})}); }), "PipelineBroken");

  std::this_thread::sleep_for(400ms);
  const Ticket probe = pipeline.submit({Value(int64_t{4})});  // fails, too
  probe.wait();
  EXPECT_EQ(probe.failure()->kind, FailureKind::stage_failed);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{5})}); }), "PipelineBroken");

  is_bad = false;
  std::this_thread::sleep_for(400ms);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{6})})), 6);
  EXPECT_EQ(pipeline.state(), State::running);
}

TEST(PipelineFailures, OneProbeAtATime) {
  Gate gate;
  std::atomic<bool> is_bad = true;
  auto code = number_code(1, [&](int64_t x) {
    if (is_bad) throw_user_error("bad");
    gate.pass();
    return x;
  });
  Pipeline pipeline(chain_of({std::move(code)}), {.failures_in_row = 1, .probe_seconds = 0});
  pipeline.submit({Value(int64_t{0})}).wait();
  EXPECT_EQ(pipeline.state(), State::degraded);
  is_bad = false;
  const Ticket probe = pipeline.submit({Value(int64_t{1})});
  gate.await(1);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{2})}); }), "PipelineBroken");
  gate.open();
  EXPECT_EQ(number_of(probe), 1);
}

TEST(PipelineFailures, ResetAndSuccessesInBetween) {
  Pipeline pipeline(chain_of({failing_at([](int64_t x) { return x < 100; })}),
                    {.failures_in_row = 2, .probe_seconds = 1000});
  pipeline.submit({Value(int64_t{1})}).wait();
  pipeline.submit({Value(int64_t{100})}).wait();  // ends the row
  pipeline.submit({Value(int64_t{1})}).wait();
  EXPECT_EQ(pipeline.state(), State::running);
  pipeline.submit({Value(int64_t{1})}).wait();
  EXPECT_EQ(pipeline.state(), State::degraded);
  pipeline.reset();
  EXPECT_EQ(pipeline.state(), State::running);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{100})})), 100);
}

// Deadlines of requests: before they start, and while a stage works on them.
TEST(PipelineFailures, Deadlines) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate), adder(0)}));
  const Ticket running = pipeline.submit({Value(int64_t{1})}, {.deadline = after(300ms)});
  gate.await(1);
  const Ticket waiting = pipeline.submit({Value(int64_t{2})}, {.deadline = after(10ms)});
  const Ticket patient = pipeline.submit({Value(int64_t{3})}, {.deadline = after(1h)});
  EXPECT_TRUE(waiting.wait(after(10s)));
  EXPECT_TRUE(running.wait(after(10s)));  // although its stage has not returned
  for (const Ticket& ticket : {running, waiting}) {
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_EQ(ticket.failure()->kind, FailureKind::deadline);
    EXPECT_EQ(kind_thrown([&] { ticket.results(); }), "DeadlineExceeded");
  }
  EXPECT_FALSE(patient.failure().has_value());
  gate.open();
  EXPECT_EQ(number_of(patient), 3);
  EXPECT_EQ(gate.num_arrived(), 2);  // the one whose deadline passed was not begun
  EXPECT_EQ(pipeline.metrics().expired, 2U);
}

TEST(PipelineFailures, ADeadlineThatHasPassed) {
  Pipeline pipeline(chain_of({adder(0)}));
  const Ticket late = pipeline.submit({Value(int64_t{1})}, {.deadline = Clock::now() - 1s});
  EXPECT_TRUE(late.wait(after(10s)));
  EXPECT_EQ(late.failure()->kind, FailureKind::deadline);
}

// Rule 9: a stage that hangs ends its requests, and is left to itself; when it returns the pipeline goes on.
TEST(PipelineFailures, AStageThatHangs) {
  Gate gate;
  PipelineSpec spec = chain_of({adder(0), gated(gate), adder(0)});
  spec.stages[1].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec), {.max_inflight = 8, .probe_seconds = 1000});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 8; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (const Ticket& ticket : tickets) {
    ASSERT_TRUE(ticket.wait(after(10s)));
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_EQ(ticket.failure()->kind, FailureKind::stage_timeout);
    EXPECT_EQ(ticket.failure()->stage, "s1");
  }
  EXPECT_EQ(pipeline.state(), State::degraded);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{9})}); }), "PipelineBroken");
  EXPECT_EQ(pipeline.stop(after(1s)), std::vector<std::string>{"s1"});
  EXPECT_EQ(pipeline.state(), State::failed);
  gate.open();
  EXPECT_TRUE(pipeline.stop(after(10s)).empty());
  EXPECT_EQ(pipeline.state(), State::stopped);
}

TEST(PipelineFailures, AStageThatReturnsLateWorksAgain) {
  Gate gate;
  PipelineSpec spec = chain_of({gated(gate), adder(1)});
  spec.stages[0].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec), {.probe_seconds = 1000});
  const Ticket stuck = pipeline.submit({Value(int64_t{1})});
  ASSERT_TRUE(stuck.wait(after(10s)));
  gate.open();
  while (pipeline.state() == State::degraded) std::this_thread::yield();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{2})})), 3);
}

// A request that is submitted after the late return is none of those that waited for it, although their outcomes are
// still being told.
TEST(PipelineFailures, ALateReturnLeavesLaterRequestsAlone) {
  Gate gate;
  PipelineSpec spec = chain_of({gated(gate)});
  spec.stages[0].time_limit_seconds = 0.5;
  Pipeline pipeline(std::move(spec), {.probe_seconds = 1000});
  std::vector<Ticket> later;
  std::promise<void> are_submitted;
  pipeline.submit({Value(int64_t{1})}, {.on_done = [&](const Ticket&) {
                    gate.open();
                    while (pipeline.state() == State::degraded) std::this_thread::yield();
                    gate.close();
                    later.push_back(pipeline.submit({Value(int64_t{2})}));
                    gate.await(2);
                    later.push_back(pipeline.submit({Value(int64_t{3})}));  // waits behind the one before
                    are_submitted.set_value();
                  }});
  are_submitted.get_future().get();
  std::this_thread::sleep_for(20ms);  // the watch ends what it has begun
  gate.open();
  EXPECT_EQ(number_of(later[0]), 2);
  EXPECT_EQ(number_of(later[1]), 3);
}

// A probe that cannot even start, because the first stage hangs, ends as the others did.
TEST(PipelineFailures, AProbeBehindAStageThatHangs) {
  Gate gate;
  PipelineSpec spec = chain_of({gated(gate)});
  spec.stages[0].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec), {.probe_seconds = 0});
  for (int64_t i = 1; i < 4; ++i) {
    const Ticket ticket = pipeline.submit({Value(i)});
    ASSERT_TRUE(ticket.wait(after(10s))) << i;
    EXPECT_EQ(ticket.failure()->kind, FailureKind::stage_timeout);
    EXPECT_EQ(pipeline.state(), State::degraded);
  }
  gate.open();
  while (pipeline.state() == State::degraded) std::this_thread::yield();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{4})})), 4);
  EXPECT_EQ(gate.num_arrived(), 2);
}

// The watch over time limits rests while nothing is in the pipeline, and begins again.
TEST(PipelineFailures, ACallThatHangsAfterARest) {
  Gate gate;
  gate.open();
  PipelineSpec spec = chain_of({gated(gate)});
  spec.stages[0].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec));
  for (int64_t i = 0; i < 30; ++i) {
    pipeline.submit({Value(i)}).wait();
    std::this_thread::sleep_for(std::chrono::microseconds(i * 100));
  }
  gate.close();
  const Ticket stuck = pipeline.submit({Value(int64_t{1})});
  ASSERT_TRUE(stuck.wait(after(10s)));
  EXPECT_EQ(stuck.failure()->kind, FailureKind::stage_timeout);
  gate.open();
}

// A call that returns late, with an error, ends what its hanging began, too.
TEST(PipelineFailures, ALateErrorEndsTheBreak) {
  Gate gate;
  auto code = number_code(1, [&](int64_t x) {
    gate.pass();
    if (x == 1) throw_user_error("late");
    return x;
  });
  PipelineSpec spec = chain_of({std::move(code)});
  spec.stages[0].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec), {.probe_seconds = 1000});
  const Ticket stuck = pipeline.submit({Value(int64_t{1})});
  ASSERT_TRUE(stuck.wait(after(10s)));
  gate.open();
  while (pipeline.state() == State::degraded) std::this_thread::yield();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{2})})), 2);
}

TEST(PipelineFailures, ADestructorDoesNotWaitForEver) {
  auto gate = std::make_shared<Gate>();
  auto code = number_code(1, [gate](int64_t x) {
    gate->pass();
    return x;
  });
  Ticket ticket = [&] {
    Pipeline pipeline(chain_of({std::move(code)}), {.stop_seconds = 0.01});
    Ticket made = pipeline.submit({Value(int64_t{1})});
    gate->await(1);
    return made;
  }();
  EXPECT_EQ(ticket.failure()->kind, FailureKind::stopped);
  gate->open();  // its thread ends now, and frees what it used
  std::this_thread::sleep_for(20ms);
}

// Rule 10: cancelling.
TEST(PipelineFailures, Cancel) {
  Gate gate;
  std::atomic<int> calls = 0;
  Pipeline pipeline(chain_of({gated(gate), failing_at([](int64_t) { return false; }, &calls)}),
                    {.max_inflight = 3, .when_full = WhenFull::reject});
  const Ticket started = pipeline.submit({Value(int64_t{1})});
  gate.await(1);
  const Ticket waiting = pipeline.submit({Value(int64_t{2})}), last = pipeline.submit({Value(int64_t{3})});
  EXPECT_TRUE(waiting.cancel());
  EXPECT_FALSE(waiting.cancel());
  EXPECT_EQ(waiting.failure()->kind, FailureKind::cancelled);
  EXPECT_TRUE(started.cancel());
  EXPECT_EQ(kind_thrown([&] { started.results(); }), "Cancelled");
  const Ticket next = pipeline.submit({Value(int64_t{4})});  // in the place of the one that had not started
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{5})}); }), "PipelineFull");
  gate.open();
  EXPECT_EQ(number_of(last), 3);
  EXPECT_EQ(number_of(next), 4);
  EXPECT_FALSE(last.cancel());
  EXPECT_EQ(calls, 2);
  while (pipeline.metrics().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(pipeline.metrics().cancelled, 2U);
}

TEST(PipelineFailures, ExpiredOutcomesCanBeRead) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}));
  pipeline.push({Value(int64_t{1})}, {.deadline = after(1ms)});
  const std::optional<Ticket> outcome = pipeline.next(after(10s));
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->failure()->kind, FailureKind::deadline);
  gate.open();
}

TEST(PipelineFailures, CallbacksRunOnceForEveryOutcome) {
  std::atomic<int> good = 0, bad = 0;
  {
    Pipeline pipeline(chain_of({failing_at([](int64_t x) { return x % 2 == 1; })}), {.failures_in_row = 0});
    for (int64_t i = 0; i < 100; ++i) {
      pipeline.submit({Value(i)}, {.on_done = [&](const Ticket& ticket) {
                        ++(ticket.failure().has_value() ? bad : good);
                        throw std::runtime_error("a callback's own affair");
                      }});
    }
    EXPECT_TRUE(pipeline.drain());
  }
  EXPECT_EQ(good, 50);
  EXPECT_EQ(bad, 50);
}

TEST(PipelineFailures, CallbacksOfATicketThatIsDoneRunAtOnce) {
  Pipeline pipeline(chain_of({adder(1)}));
  const Ticket ticket = pipeline.submit({Value(int64_t{1})});
  EXPECT_TRUE(pipeline.drain());  // its callbacks have run
  int64_t seen = 0;
  ticket.on_done([&](const Ticket& done) { seen = number_of(done); });
  EXPECT_EQ(seen, 2);
}

}  // namespace
}  // namespace headrace::executors::pipeline
