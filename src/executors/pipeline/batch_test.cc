// Stages that take several requests in one call: which requests a call has, and that each request is treated as if it
// were alone.
#include <gmock/gmock.h>

#include <atomic>
#include <random>
#include <set>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Numbers = std::vector<int64_t>;

Numbers numbers_of(const Array<Value>& values) {
  Numbers numbers;
  for (size_t i = 0; i < values.size(); ++i) numbers.push_back(values[i].as<int64_t>());
  return numbers;
}
Array<Value> values_of(const Numbers& numbers) {
  Array<Value> values;
  for (const int64_t number : numbers) values.push_back(Value(number));
  return values;
}

// Records the arguments of a stage's calls.
class Calls {
 public:
  void add(Numbers numbers) {
    const std::lock_guard lock(mutex_);
    calls_.push_back(std::move(numbers));
  }
  std::vector<Numbers> get() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  size_t largest() const {
    size_t most = 0;
    for (const Numbers& call : get()) most = std::max(most, call.size());
    return most;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Numbers> calls_;
};

// Makes a stage that returns each number plus 100, after `before` was called with the numbers.
std::shared_ptr<StageCode> batch_code(Calls& calls, std::function<void(const Numbers&)> before = {}) {
  PackedFunc function = make_packed([&calls, before = std::move(before)](Array<Value> xs) {
    Numbers numbers = numbers_of(xs);
    calls.add(numbers);
    if (before) before(numbers);
    for (int64_t& number : numbers) number += 100;
    return values_of(numbers);
  });
  return make_batch_function_stage(std::move(function), {any_port("x")}, {any_port("y")});
}

std::function<void(const Numbers&)> passes(Gate& gate) {
  return [&gate](const Numbers&) { gate.pass(); };
}

// Makes the stage at `index` one that takes batches.
PipelineSpec with_batch(PipelineSpec spec, size_t index, Batch batch) {
  spec.stages[index].batch = std::move(batch);
  return spec;
}

std::vector<Ticket> submit_all(Pipeline& pipeline, int64_t begin, int64_t end) {
  std::vector<Ticket> tickets;
  for (int64_t i = begin; i < end; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  return tickets;
}

// While one call runs, requests gather for the next one, up to max_batch.
TEST(PipelineBatches, RequestsThatHaveArrivedShareACall) {
  for (const bool is_source : {true, false}) {
    Gate gate;
    Calls calls;
    const auto code = batch_code(calls, passes(gate));
    Pipeline pipeline(is_source ? with_batch(chain_of({code}), 0, {.max_batch = 4})
                                : with_batch(chain_of({adder(0), code, adder(0)}), 1, {.max_batch = 4}));
    const Ticket first = pipeline.submit({Value(int64_t{0})});
    gate.await(1);
    const std::vector<Ticket> others = submit_all(pipeline, 1, 7);
    while (!is_source && pipeline.metrics().stages[0].items < 7) std::this_thread::yield();
    gate.open();
    EXPECT_EQ(number_of(first), 100);
    for (int64_t i = 1; i < 7; ++i) EXPECT_EQ(number_of(others[static_cast<size_t>(i - 1)]), 100 + i);
    EXPECT_THAT(calls.get(), ElementsAre(Numbers{0}, Numbers{1, 2, 3, 4}, Numbers{5, 6}));
    const StageMetrics stage = pipeline.metrics().stages[is_source ? 0 : 1];
    EXPECT_EQ(stage.items, 7U);
    EXPECT_EQ(stage.batches, 3U);
    EXPECT_GT(stage.waited_ns, 0U);
  }
}

TEST(PipelineBatches, TheFirstRequestWaitsForOthersUntilItsDelayIsOver) {
  Calls calls;
  Pipeline pipeline(with_batch(chain_of({batch_code(calls)}), 0, {.max_batch = 3, .max_delay_seconds = 0.2}));
  const Clock::time_point begin = Clock::now();
  const std::vector<Ticket> few = submit_all(pipeline, 0, 2);
  EXPECT_EQ(number_of(few[1]), 101);
  EXPECT_GE(Clock::now() - begin, 200ms);
  EXPECT_THAT(calls.get(), ElementsAre(Numbers{0, 1}));
  // A full batch does not wait.
  Calls full_calls;
  Pipeline full(with_batch(chain_of({batch_code(full_calls)}), 0, {.max_batch = 3, .max_delay_seconds = 1000}));
  for (const Ticket& ticket : submit_all(full, 0, 3)) EXPECT_TRUE(ticket.wait(after(60s)));
  EXPECT_THAT(full_calls.get(), ElementsAre(Numbers{0, 1, 2}));
}

// The delay counts from the arrival of the first request, also while another call runs.
TEST(PipelineBatches, TheDelayCountsWhileAnotherCallRuns) {
  for (const bool is_source : {true, false}) {
    Gate gate;
    Calls calls;
    const auto code = batch_code(calls, passes(gate));
    const Batch batch{.max_batch = 2, .max_delay_seconds = 0.5};
    Pipeline pipeline(is_source ? with_batch(chain_of({code}), 0, batch)
                                : with_batch(chain_of({adder(0), code}), 1, batch));
    submit_all(pipeline, 0, 2);
    gate.await(1);
    const Clock::time_point begin = Clock::now();
    const Ticket late = pipeline.submit({Value(int64_t{2})});
    std::this_thread::sleep_for(500ms);
    gate.open();
    EXPECT_EQ(number_of(late), 102);
    EXPECT_LT(Clock::now() - begin, 900ms);
  }
}

// Rules 3 and 5: order, and joins by request, with batches of any size at two stages.
TEST(PipelineBatches, OrderAndJoinsHold) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}, {}, {}}};
  Calls first, second;
  const auto sometimes_slow = [](const Numbers& numbers) {
    if (numbers[0] % 3 == 0) std::this_thread::sleep_for(200us);
  };
  spec.stages = {
      stage_of("a", adder(0), {from_input(0)}, 0), stage_of("b", batch_code(first, sometimes_slow), {from_stage(0)}, 1),
      stage_of("c", batch_code(second), {from_stage(0)}, 2),
      stage_of("join", number_code(3, [](int64_t x, int64_t y, int64_t z) { return x == y && y == z + 100 ? x : -1; }),
               {from_stage(1), from_stage(2), from_stage(0)}, 3)};
  spec.stages[1].batch = Batch{.max_batch = 5};
  spec.stages[2].batch = Batch{.max_batch = 3, .max_delay_seconds = 0.0005};
  spec.outputs = {{.name = "y", .source = from_stage(3)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 11});
  for (int64_t i = 0; i < 1000; ++i) {
    pipeline.push({Value(i)});
    if (i < 10) continue;
    ASSERT_EQ(number_of(*pipeline.next()), i - 10 + 100);
  }
  EXPECT_TRUE(pipeline.drain(after(60s)));
  EXPECT_GT(first.largest(), 1U);
  EXPECT_GT(second.largest(), 1U);
  EXPECT_LE(first.largest(), 5U);
  EXPECT_LE(second.largest(), 3U);
}

// A batch beside an edge that skips it can fill up: the edge has slots for it.
TEST(PipelineBatches, AnEdgeBesideABatchDoesNotKeepItSmall) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}, {}}};
  Calls calls;
  auto two = make_function_stage(make_packed([](int64_t x) { return Array<Value>{Value(x), Value(x)}; }),
                                 {any_port("x")}, {any_port("y"), any_port("z")});
  spec.stages = {stage_of("two", std::move(two), {from_input(0)}, 0),
                 stage_of("many", batch_code(calls), {from_stage(0, 0)}, 1),
                 stage_of("join", number_code(2, [](int64_t x, int64_t y) { return x - y; }),
                          {from_stage(1), from_stage(0, 1)}, 2)};
  spec.stages[1].batch = Batch{.max_batch = 16, .max_delay_seconds = 1000};  // only full batches run
  spec.outputs = {{.name = "y", .source = from_stage(2)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 64});
  std::vector<Ticket> tickets = submit_all(pipeline, 0, 160);
  for (const Ticket& ticket : tickets) {
    ASSERT_TRUE(ticket.wait(after(60s)));
    ASSERT_EQ(number_of(ticket), 100);
  }
  for (const Numbers& call : calls.get()) EXPECT_EQ(call.size(), 16U);
}

// Rule 6: a call that fails fails its requests, with the batch in the message, and no others.
TEST(PipelineBatches, AFailedCallNamesItsBatch) {
  Gate gate;
  Calls calls;
  const auto code = batch_code(calls, [&](const Numbers& numbers) {
    gate.pass();
    if (std::count(numbers.begin(), numbers.end(), 2) > 0) throw_user_error("2 is bad");
  });
  Pipeline pipeline(with_batch(chain_of({code, adder(1)}), 0, {.max_batch = 3}), {.failures_in_row = 0});
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 1);
  gate.await(1);
  const std::vector<Ticket> others = submit_all(pipeline, 1, 6);
  gate.open();
  EXPECT_EQ(number_of(tickets[0]), 101);
  for (size_t i = 0; i < 3; ++i) {
    others[i].wait();
    ASSERT_TRUE(others[i].failure().has_value());
    EXPECT_EQ(others[i].failure()->kind, FailureKind::stage_failed);
    EXPECT_EQ(message_of(*others[i].failure()),
              fmt::format("request {} failed in stage 's0' in a batch of 3 requests, from 1 to 3: 2 is bad", i + 1));
  }
  EXPECT_EQ(number_of(others[3]), 105);
  EXPECT_EQ(number_of(others[4]), 106);
  EXPECT_EQ(pipeline.metrics().stages[0].errors, 3U);
}

TEST(PipelineBatches, ABadRequestFailsAloneWhereEachIsTriedAgain) {
  std::mt19937 random(1);
  Calls calls;
  const auto code = batch_code(calls, [](const Numbers& numbers) {
    for (const int64_t number : numbers) {
      if (number % 7 == 3) throw_user_error("{} is bad", number);
    }
  });
  Pipeline pipeline(with_batch(chain_of({adder(0), code, adder(0)}), 1,
                               {.max_batch = 4, .max_delay_seconds = 0.001, .retry_alone = true}),
                    {.failures_in_row = 0});
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 500);
  for (int64_t i = 0; i < 500; ++i) {
    const Ticket& ticket = tickets[static_cast<size_t>(i)];
    ticket.wait();
    if (i % 7 != 3) {
      ASSERT_EQ(number_of(ticket), i + 100);
      continue;
    }
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_EQ(message_of(*ticket.failure()), fmt::format("request {} failed in stage 's1': {} is bad", i, i));
  }
  const StageMetrics stage = pipeline.metrics().stages[1];
  EXPECT_EQ(stage.items, 500U);
  EXPECT_EQ(stage.errors, 71U);  // 3, 10 .. 493
  EXPECT_GT(calls.largest(), 1U);
}

// Rule 7: the breaker counts requests, not calls.
TEST(PipelineBatches, TheBreakerCountsRequests) {
  Gate gate;
  Calls calls;
  std::atomic<bool> is_bad = true;
  const auto code = batch_code(calls, [&](const Numbers& numbers) {
    gate.pass();
    if (is_bad && numbers[0] > 0) throw_user_error("bad");
  });
  Pipeline pipeline(with_batch(chain_of({code}), 0, {.max_batch = 3}), {.failures_in_row = 3, .probe_seconds = 1000});
  pipeline.submit({Value(int64_t{0})});
  gate.await(1);
  const std::vector<Ticket> tickets = submit_all(pipeline, 1, 4);
  gate.open();
  for (const Ticket& ticket : tickets) ticket.wait();
  EXPECT_EQ(pipeline.state(), State::degraded);
  is_bad = false;
  pipeline.reset();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{9})})), 109);
}

// Rule 10: a cancelled request is left out, whether it waits to be admitted or waits for its batch.
TEST(PipelineBatches, CancelledRequestsAreLeftOut) {
  for (const bool is_source : {true, false}) {
    Gate gate;
    Calls calls;
    const auto code = batch_code(calls, passes(gate));
    const Batch batch{.max_batch = 3, .max_delay_seconds = 1000};
    Pipeline pipeline(is_source ? with_batch(chain_of({code, adder(0)}), 0, batch)
                                : with_batch(chain_of({adder(0), code, adder(0)}), 1, batch),
                      {.max_inflight = 4, .when_full = WhenFull::reject});
    gate.open();
    const Ticket first = pipeline.submit({Value(int64_t{0})});
    const Ticket cancelled = pipeline.submit({Value(int64_t{1})});
    while (!is_source && pipeline.metrics().stages[0].items < 2) std::this_thread::yield();
    EXPECT_TRUE(cancelled.cancel());
    EXPECT_FALSE(cancelled.cancel());
    const Ticket second = pipeline.submit({Value(int64_t{2})}), third = pipeline.submit({Value(int64_t{3})});
    EXPECT_EQ(number_of(first), 100);
    EXPECT_EQ(number_of(second), 102);
    EXPECT_EQ(number_of(third), 103);
    EXPECT_THAT(calls.get(), ElementsAre(Numbers{0, 2, 3}));
    EXPECT_EQ(cancelled.failure()->kind, FailureKind::cancelled);
    while (pipeline.metrics().in_flight > 0) std::this_thread::yield();
  }
}

// A request that was cancelled before any other arrived passes at once, and no batch waits for it.
TEST(PipelineBatches, ACancelledRequestThatIsTheFirstPasses) {
  Gate gate;
  Calls calls;
  Pipeline pipeline(
      with_batch(chain_of({gated(gate), batch_code(calls)}), 1, {.max_batch = 2, .max_delay_seconds = 1000}),
      {.max_inflight = 2});
  const Ticket cancelled = pipeline.submit({Value(int64_t{0})});
  gate.await(1);
  EXPECT_TRUE(cancelled.cancel());
  gate.open();
  while (pipeline.metrics().in_flight > 0) std::this_thread::yield();
  EXPECT_TRUE(calls.get().empty());
  const std::vector<Ticket> tickets = submit_all(pipeline, 1, 3);
  EXPECT_EQ(number_of(tickets[1]), 102);
}

// A deadline that passes while a batch waits ends its request, which is left out.
TEST(PipelineBatches, RequestsWhoseDeadlinePassedAreLeftOut) {
  Calls calls;
  Pipeline pipeline(
      with_batch(chain_of({adder(0), batch_code(calls)}), 1, {.max_batch = 2, .max_delay_seconds = 1000}));
  const Ticket late = pipeline.submit({Value(int64_t{0})}, {.deadline = after(20ms)});
  EXPECT_TRUE(late.wait(after(60s)));
  EXPECT_EQ(late.failure()->kind, FailureKind::deadline);
  const std::vector<Ticket> tickets = submit_all(pipeline, 1, 3);
  for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.wait(after(60s)));
  EXPECT_THAT(calls.get(), ElementsAre(Numbers{1, 2}));
  EXPECT_EQ(pipeline.metrics().expired, 1U);
}

// Rule 9: a call that hangs ends all of its requests.
TEST(PipelineBatches, ACallThatHangs) {
  Gate gate;
  Calls calls;
  PipelineSpec spec =
      with_batch(chain_of({batch_code(calls, passes(gate)), adder(0)}), 0, {.max_batch = 3, .max_delay_seconds = 0.05});
  spec.stages[0].time_limit_seconds = 0.2;
  Pipeline pipeline(std::move(spec), {.probe_seconds = 1000});
  for (const Ticket& ticket : submit_all(pipeline, 0, 5)) {
    ASSERT_TRUE(ticket.wait(after(60s)));
    ASSERT_TRUE(ticket.failure().has_value());
    EXPECT_EQ(ticket.failure()->kind, FailureKind::stage_timeout);
  }
  EXPECT_EQ(pipeline.state(), State::degraded);
  gate.open();
  while (pipeline.state() == State::degraded) std::this_thread::yield();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{7})})), 107);
}

// Rule 11: stop ends the requests of a batch that runs and of one that waits.
TEST(PipelineBatches, StopEndsAll) {
  Gate gate;
  Calls calls;
  Pipeline pipeline(with_batch(chain_of({adder(0), batch_code(calls, passes(gate))}), 1,
                               {.max_batch = 2, .max_delay_seconds = 1000}));
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 3);
  gate.await(1);
  EXPECT_EQ(pipeline.stop(after(5ms)), std::vector<std::string>{"s1"});
  for (const Ticket& ticket : tickets) EXPECT_EQ(ticket.failure()->kind, FailureKind::stopped);
  gate.open();
  EXPECT_TRUE(pipeline.stop().empty());
  EXPECT_EQ(calls.get().size(), 1U);

  Pipeline waiting(with_batch(chain_of({batch_code(calls)}), 0, {.max_batch = 2, .max_delay_seconds = 1000}));
  const Ticket ticket = waiting.submit({Value(int64_t{0})});
  EXPECT_TRUE(waiting.stop(after(10s)).empty());
  EXPECT_EQ(ticket.failure()->kind, FailureKind::stopped);
}

// Rule 11: a batch that cannot fill up any more does not wait when the pipeline is drained.
TEST(PipelineBatches, DrainDoesNotWaitForABatchToFillUp) {
  Calls calls;
  Pipeline pipeline(
      with_batch(chain_of({adder(0), batch_code(calls)}), 1, {.max_batch = 4, .max_delay_seconds = 1000}));
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 3);
  EXPECT_TRUE(pipeline.drain(after(60s)));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), 100 + i);
}

// Rule 2: requests wait where the stage after the batch is slow, and the batch has no more than max_inflight of them.
TEST(PipelineBatches, BackpressureHolds) {
  Gate gate;
  Calls calls;
  Pipeline pipeline(with_batch(chain_of({adder(0), batch_code(calls), gated(gate)}), 1,
                               {.max_batch = 64, .max_delay_seconds = 0.002}),
                    {.max_inflight = 6, .when_full = WhenFull::reject});
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 6);
  gate.await(1);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{9})}); }), "PipelineFull");
  gate.open();
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), 100 + i);
  for (const Numbers& call : calls.get()) EXPECT_LE(call.size(), 6U);
}

// With few places behind it, a batch waits until all of its results have one, and then is full.
TEST(PipelineBatches, ASlowStageBehindABatchKeepsBatchesFull) {
  Calls calls;
  auto slow = number_code(1, [](int64_t x) {
    std::this_thread::sleep_for(1ms);
    return x;
  });
  Pipeline pipeline(
      with_batch(chain_of({batch_code(calls), std::move(slow)}), 0, {.max_batch = 4, .max_delay_seconds = 0.0}),
      {.max_inflight = 32});
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 200);
  for (const Ticket& ticket : tickets) EXPECT_TRUE(ticket.wait(after(60s)));
  const StageMetrics stage = pipeline.metrics().stages[0];
  EXPECT_GE(static_cast<double>(stage.items) / static_cast<double>(stage.batches), 3.0);
}

// Requests that wait for their batch have not started: newer ones may take their place.
TEST(PipelineBatches, AWaitingRequestIsDroppedForANewerOne) {
  Calls calls;
  Pipeline pipeline(with_batch(chain_of({batch_code(calls)}), 0, {.max_batch = 4, .max_delay_seconds = 1000}),
                    {.max_inflight = 4, .when_full = WhenFull::drop_oldest});
  const Ticket held = pipeline.submit({Value(int64_t{0})});
  EXPECT_FALSE(held.wait(after(20ms)));
  EXPECT_EQ(pipeline.metrics().waiting, 1U);
  for (const Ticket& ticket : submit_all(pipeline, 1, 4)) ticket.wait();
  EXPECT_THAT(calls.get(), ElementsAre(Numbers{0, 1, 2, 3}));

  Gate gate;
  Calls few;
  Pipeline busy(with_batch(chain_of({batch_code(few, passes(gate))}), 0, {.max_batch = 2}),
                {.max_inflight = 3, .when_full = WhenFull::drop_oldest});
  busy.submit({Value(int64_t{0})});
  gate.await(1);
  const std::vector<Ticket> tickets = submit_all(busy, 1, 4);
  gate.open();
  tickets[0].wait();
  EXPECT_EQ(tickets[0].failure()->kind, FailureKind::dropped);
  EXPECT_EQ(number_of(tickets[2]), 103);
  EXPECT_THAT(few.get(), ElementsAre(Numbers{0}, Numbers{2, 3}));
}

// Rule 12: a batch never has requests that see different parameters.
TEST(PipelineBatches, ABatchSeesOneVersionOfParameters) {
  const auto number = [](float value) { return NDArray::from_vector<float>({1}, DataType::parse("float32"), {value}); };
  std::atomic<size_t> largest = 0;
  PackedFunc function = make_packed([&](Array<Value> xs, NDArray w) {
    Numbers numbers = numbers_of(xs);
    largest = std::max(largest.load(), numbers.size());
    for (int64_t& one : numbers) one += static_cast<int64_t>(w.data<float>()[0]);
    return values_of(numbers);
  });
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
  spec.params = {{.group = "g", .port = float_port("w", {1})}};
  spec.stages = {stage_of(
      "add", make_batch_function_stage(std::move(function), {any_port("x"), float_port("w", {1})}, {any_port("y")}),
      {from_input(0), from_param(0)}, 0)};
  spec.stages[0].batch = Batch{.max_batch = 8, .max_delay_seconds = 0.001};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 32});
  std::vector<Ticket> tickets;
  std::vector<int64_t> expected;
  for (int64_t i = 0; i < 600; ++i) {
    if (i % 5 == 0) {
      EXPECT_EQ(pipeline.set_params("g", {{"w", number(static_cast<float>(1000 * i))}}), static_cast<uint64_t>(i));
    }
    tickets.push_back(pipeline.submit({Value(i)}));
    expected.push_back(i + 1000 * (i - i % 5));
  }
  for (size_t i = 0; i < tickets.size(); ++i) ASSERT_EQ(number_of(tickets[i]), expected[i]);
  EXPECT_GT(largest, 1U);
  EXPECT_LE(largest, 5U);
}

TEST(PipelineBatches, ReplicasTakeBatchesAtOnce) {
  std::atomic<int> running = 0, most = 0;
  Calls calls;
  PipelineSpec spec = chain_of({adder(0), nullptr, adder(0)});
  spec.stages[1].replicas.clear();
  for (int i = 0; i < 3; ++i) {
    spec.stages[1].replicas.push_back(batch_code(calls, [&](const Numbers& numbers) {
      const int now = ++running;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(numbers[0] * 37 % 300));
      --running;
    }));
  }
  Pipeline pipeline(with_batch(std::move(spec), 1, {.max_batch = 4, .max_delay_seconds = 0.0002}),
                    {.max_inflight = 32});
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 1000);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(number_of(tickets[static_cast<size_t>(i)]), i + 100);
  EXPECT_GT(most, 1);
  EXPECT_GT(calls.largest(), 1U);
  EXPECT_LE(calls.largest(), 4U);
}

// Two stages without producers share the requests, and one of them takes batches.
TEST(PipelineBatches, TwoSourcesOfWhichOneTakesBatches) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}}};
  Calls calls;
  spec.stages = {stage_of("plain", adder(0), {from_input(0)}, 0),
                 stage_of("many", batch_code(calls), {from_input(0)}, 1)};
  spec.stages[1].batch = Batch{.max_batch = 4, .max_delay_seconds = 0.0005};
  spec.outputs = {{.name = "a", .source = from_stage(0)}, {.name = "b", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 6});
  for (int64_t i = 0; i < 2000; ++i) pipeline.submit({Value(i)});
  EXPECT_TRUE(pipeline.drain(after(60s)));
  EXPECT_EQ(pipeline.metrics().succeeded, 2000U);
}

// A stage that takes batches shares its thread with others: it waits for them without keeping the thread.
TEST(PipelineBatches, ABatchInAGroupWithOtherStages) {
  Calls calls;
  Pipeline pipeline(with_batch(chain_of({adder(0), batch_code(calls), adder(1)}, true), 1,
                               {.max_batch = 4, .max_delay_seconds = 1000}));
  const std::vector<Ticket> tickets = submit_all(pipeline, 0, 8);
  for (int64_t i = 0; i < 8; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i + 101);
  for (const Numbers& call : calls.get()) EXPECT_EQ(call.size(), 4U);
}

// Many requests with errors, cancellations, deadlines and changes of the stream at once: each gets one outcome.
TEST(PipelineBatches, EveryRequestGetsOneOutcome) {
  constexpr int64_t kRequests = 4000;
  std::mt19937 random(7);
  Calls calls;
  const auto code = batch_code(calls, [](const Numbers& numbers) {
    for (const int64_t number : numbers) {
      if (number % 50 == 49) throw_user_error("bad");
    }
  });
  std::atomic<int> outcomes = 0;
  Pipeline pipeline(with_batch(chain_of({adder(0), code, adder(0)}), 1,
                               {.max_batch = 8, .max_delay_seconds = 0.0002, .retry_alone = true}),
                    {.max_inflight = 24, .failures_in_row = 0});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < kRequests; ++i) {
    SubmitOptions options{.on_done = [&](const Ticket&) { ++outcomes; }};
    if (random() % 20 == 0) options.deadline = after(std::chrono::microseconds(random() % 300));
    tickets.push_back(pipeline.submit({Value(i)}, std::move(options)));
    if (random() % 10 == 0) tickets[tickets.size() - 1 - random() % std::min<size_t>(tickets.size(), 20)].cancel();
  }
  EXPECT_TRUE(pipeline.drain(after(60s)));
  EXPECT_EQ(outcomes, kRequests);
  for (int64_t i = 0; i < kRequests; ++i) {
    const Ticket& ticket = tickets[static_cast<size_t>(i)];
    ASSERT_TRUE(ticket.is_done());
    if (const auto failure = ticket.failure()) {
      if (failure->kind == FailureKind::stage_failed) {
        EXPECT_EQ(i % 50, 49);
      }
    } else {
      ASSERT_EQ(number_of(ticket), i + 100);
    }
  }
}

TEST(PipelineBatches, FunctionsReturnAValueForEachRequest) {
  const auto message = [](PackedFunc function, std::vector<Port> outputs = {any_port("y")}) {
    PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
    spec.stages = {
        stage_of("f", make_batch_function_stage(std::move(function), {any_port("x")}, outputs), {from_input(0)}, 0)};
    spec.stages[0].batch = Batch{.max_batch = 2, .max_delay_seconds = 1000};
    for (size_t i = 0; i < outputs.size(); ++i)
      spec.outputs.push_back({.name = outputs[i].name(), .source = from_stage(0, i)});
    Pipeline pipeline(std::move(spec));
    const std::vector<Ticket> tickets = submit_all(pipeline, 0, 2);
    tickets[0].wait();
    return message_thrown([&] { tickets[1].results(); });
  };
  EXPECT_THAT(message(make_packed([](Array<Value>) { return values_of({1}); })),
              HasSubstr("the function returned 1 values for output 'y'; it was called for 2 requests"));
  EXPECT_THAT(message(make_packed([](Array<Value>) { return int64_t{1}; })),
              HasSubstr("the function returned a int for output 'y'; called for several requests, it returns a"));
  EXPECT_THAT(message(make_packed([](Array<Value> xs) { return xs; }), {any_port("y"), any_port("z"), any_port("w")}),
              HasSubstr("the stage has 3 outputs, so it returns a sequence of as many sequences"));
  EXPECT_THAT(message(make_packed([](Array<Value>) { return NDArray::zeros({3, 2}, DataType::parse("float32")); })),
              HasSubstr("the function returned 3 values for output 'y'"));
  EXPECT_EQ(message(make_packed([](Array<Value>) { return NDArray::zeros({2, 2}, DataType::parse("float32")); })), "");
  EXPECT_EQ(message(make_packed([](Array<Value> xs) { return Array<Value>{Value(xs), Value(xs)}; }),
                    {any_port("y"), any_port("z")}),
            "");
}

// A value that does not fit the type of an output is the failure of its request alone.
TEST(PipelineBatches, AWrongValueIsTheFailureOfItsRequest) {
  PackedFunc function = make_packed([](Array<Value> xs) {
    Array<Value> results;
    for (const int64_t number : numbers_of(xs))
      results.push_back(Value(NDArray::zeros({number}, DataType::parse("float32"))));
    return results;
  });
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
  spec.stages = {stage_of("f", make_batch_function_stage(std::move(function), {any_port("x")}, {float_port("y", {2})}),
                          {from_input(0)}, 0)};
  spec.stages[0].batch = Batch{.max_batch = 3, .max_delay_seconds = 1000};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  Pipeline pipeline(std::move(spec));
  const std::vector<Ticket> tickets = submit_all(pipeline, 1, 4);
  EXPECT_EQ(tickets[1].results()[0].as<NDArray>().shape(), Shape{2});
  for (const size_t i : {0U, 2U}) {
    EXPECT_THAT(message_thrown([&] { tickets[i].results(); }), HasSubstr("the function's output 'y' has shape"));
    EXPECT_EQ(tickets[i].failure()->batch_size, 0U);
  }
}

TEST(PipelineBatches, SpecsThatAreRefused) {
  Calls calls;
  const auto refusal = [&](std::shared_ptr<StageCode> code, Batch batch) {
    const PipelineSpec spec = with_batch(chain_of({std::move(code)}), 0, std::move(batch));
    return message_thrown([&] { check_spec(spec); });
  };
  EXPECT_EQ(refusal(adder(0), {.max_batch = 2}),
            "stage 's0' has a max_batch, and its code takes one request at a time");
  EXPECT_EQ(refusal(batch_code(calls), {.max_batch = 0}), "max_batch of stage 's0' is 0; it lies from 1 to 65536");
  EXPECT_EQ(refusal(batch_code(calls), {.max_batch = 65537}),
            "max_batch of stage 's0' is 65537; it lies from 1 to 65536");
  EXPECT_EQ(refusal(batch_code(calls), {.max_batch = 2, .max_delay_seconds = -1}),
            "max_delay of stage 's0' is -1 seconds; it lies from 0 to 1000000");
  EXPECT_EQ(refusal(batch_code(calls), {.max_batch = 1}), "");
}

}  // namespace
}  // namespace headrace::executors::pipeline
