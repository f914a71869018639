// How requests pass the stages: order, joins, places, results and parameters.
#include <gmock/gmock.h>

#include <atomic>
#include <deque>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::HasSubstr;

TEST(PipelineFlow, ARequestPassesAllStages) {
  for (const bool share_group : {false, true}) {
    Pipeline pipeline(chain_of({adder(1), adder(10), adder(100)}, share_group));
    EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{5})})), 116);
  }
}

TEST(PipelineFlow, ManyRequestsInOrder) {
  Pipeline pipeline(chain_of({adder(1), adder(10), adder(100)}), {.max_inflight = 5});
  std::deque<Ticket> tickets;
  for (int64_t i = 0; i < 2000; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (int64_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(tickets[static_cast<size_t>(i)].number(), static_cast<uint64_t>(i));
    ASSERT_EQ(number_of(tickets[static_cast<size_t>(i)]), i + 111);
  }
}

// Rule 1: no stage runs on the caller's thread, the first neither.
TEST(PipelineFlow, SubmitRunsNoStage) {
  Gate gate;
  std::atomic<bool> is_callers = false;
  const std::thread::id caller = std::this_thread::get_id();
  auto code = number_code(1, [&](int64_t x) {
    if (std::this_thread::get_id() == caller) is_callers = true;
    gate.pass();
    return x;
  });
  Pipeline pipeline(chain_of({std::move(code)}));
  const Ticket ticket = pipeline.submit({Value(int64_t{1})});  // returns although the stage waits
  gate.await(1);
  EXPECT_FALSE(ticket.is_done());
  EXPECT_FALSE(ticket.wait(after(5ms)));
  gate.open();
  EXPECT_EQ(number_of(ticket), 1);
  EXPECT_FALSE(is_callers);
}

// Rule 1: groups work at the same time. Each stage's first call returns only when the other stage's has begun.
TEST(PipelineFlow, StagesOfTwoGroupsRunAtOnce) {
  std::atomic<int> in_first = 0, in_second = 0;
  auto first = number_code(1, [&](int64_t x) {
    in_first = static_cast<int>(x) + 1;
    while (x == 1 && in_second.load() == 0) std::this_thread::yield();
    return x;
  });
  auto second = number_code(1, [&](int64_t x) {
    in_second = 1;
    while (in_first.load() < 2) std::this_thread::yield();
    return x;
  });
  Pipeline pipeline(chain_of({std::move(first), std::move(second)}));
  const Ticket a = pipeline.submit({Value(int64_t{0})}), b = pipeline.submit({Value(int64_t{1})});
  EXPECT_EQ(number_of(a), 0);
  EXPECT_EQ(number_of(b), 1);
}

// Rule 2: the number of places is the limit, whatever the stages do.
TEST(PipelineFlow, PlacesAreBounded) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}), {.max_inflight = 3});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 3; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{3})}, {.place_until = after(2ms)}); }), "PipelineFull");
  EXPECT_EQ(pipeline.metrics().in_flight, 3U);
  gate.open();
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{3})})), 3);
  EXPECT_EQ(pipeline.metrics().refused, 1U);
}

TEST(PipelineFlow, SubmitWaitsForAPlace) {
  Gate gate;
  Pipeline pipeline(chain_of({gated(gate)}), {.max_inflight = 1});
  const Ticket first = pipeline.submit({Value(int64_t{1})});
  gate.await(1);
  std::thread opener([&] {
    std::this_thread::sleep_for(5ms);
    gate.open();
  });
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{2})})), 2);
  opener.join();
}

TEST(PipelineFlow, RejectAndDropOldest) {
  Gate gate;
  Pipeline rejecting(chain_of({gated(gate)}), {.max_inflight = 1, .when_full = WhenFull::reject});
  const Ticket first = rejecting.submit({Value(int64_t{1})});
  EXPECT_EQ(kind_thrown([&] { rejecting.submit({Value(int64_t{2})}); }), "PipelineFull");

  Gate other;
  Pipeline dropping(chain_of({gated(other)}), {.max_inflight = 2, .when_full = WhenFull::drop_oldest});
  const Ticket running = dropping.submit({Value(int64_t{1})});
  other.await(1);
  const Ticket oldest = dropping.submit({Value(int64_t{2})});
  const Ticket newest = dropping.submit({Value(int64_t{3})});
  ASSERT_TRUE(oldest.is_done());
  EXPECT_EQ(oldest.failure()->kind, FailureKind::dropped);
  EXPECT_THAT(message_of(*oldest.failure()), HasSubstr("request 1 was dropped"));
  other.open();
  gate.open();
  EXPECT_EQ(number_of(running), 1);
  EXPECT_EQ(number_of(newest), 3);
  EXPECT_EQ(dropping.metrics().dropped, 1U);
}

// A dropped request that was pushed has no outcome; the others keep theirs.
TEST(PipelineFlow, DropOldestOfPushedRequests) {
  for (const bool in_order : {true, false}) {
    Gate gate;
    Pipeline pipeline(chain_of({gated(gate)}), {.max_inflight = 2, .when_full = WhenFull::drop_oldest});
    pipeline.push({Value(int64_t{0})});
    gate.await(1);
    for (int64_t i = 1; i < 5; ++i) pipeline.push({Value(i)});
    EXPECT_EQ(pipeline.num_ready(), 0U);
    gate.open();
    const auto next = [&] { return number_of(*(in_order ? pipeline.next() : pipeline.next_done())); };
    EXPECT_EQ(next(), 0);
    EXPECT_EQ(next(), 4);
    EXPECT_EQ(pipeline.next_done(after(1ms)), std::nullopt);
    EXPECT_EQ(pipeline.metrics().dropped, 3U);
  }
}

// The place of a request is free before its outcome is visible.
TEST(PipelineFlow, APlaceIsFreeBeforeTheOutcomeIsKnown) {
  Pipeline pipeline(chain_of({adder(1), adder(1)}), {.max_inflight = 1, .when_full = WhenFull::reject});
  for (int64_t i = 0; i < 2000; ++i) ASSERT_EQ(number_of(pipeline.submit({Value(i)})), i + 2);
}

// Rule 3: results that nobody has read keep their places.
TEST(PipelineFlow, UnreadOutcomesHoldPlaces) {
  Pipeline pipeline(chain_of({adder(1)}), {.max_inflight = 2, .when_full = WhenFull::reject});
  pipeline.push({Value(int64_t{1})});
  pipeline.push({Value(int64_t{2})});
  while (pipeline.num_ready() < 2) std::this_thread::yield();
  EXPECT_EQ(kind_thrown([&] { pipeline.push({Value(int64_t{3})}); }), "PipelineFull");
  EXPECT_EQ(number_of(*pipeline.next()), 2);
  EXPECT_EQ(pipeline.push({Value(int64_t{3})}), 2U);  // the refused one has no number
  EXPECT_EQ(number_of(*pipeline.next()), 3);
  EXPECT_EQ(number_of(*pipeline.next()), 4);
  EXPECT_EQ(pipeline.next(after(1ms)), std::nullopt);
}

// Rule 3: in order by default; by completion if asked for. Two replicas let the second request overtake the first.
TEST(PipelineFlow, NextIsInOrderAndNextDoneIsNot) {
  for (const bool in_order : {true, false}) {
    Gate gate;
    PipelineSpec spec = chain_of({nullptr});
    for (StageSpec& stage : spec.stages) {
      stage.replicas.clear();
      for (int i = 0; i < 2; ++i) {
        stage.replicas.push_back(number_code(1, [&](int64_t x) {
          if (x == 0) gate.pass();
          return x;
        }));
      }
    }
    Pipeline pipeline(std::move(spec));
    pipeline.push({Value(int64_t{0})});
    pipeline.push({Value(int64_t{1})});
    while (pipeline.num_ready() < 1) std::this_thread::yield();
    if (in_order) {
      EXPECT_EQ(pipeline.next(after(2ms)), std::nullopt);
      gate.open();
      EXPECT_EQ(number_of(*pipeline.next()), 0);
      EXPECT_EQ(number_of(*pipeline.next()), 1);
    } else {
      EXPECT_EQ(number_of(*pipeline.next_done()), 1);
      gate.open();
      EXPECT_EQ(number_of(*pipeline.next_done()), 0);
    }
  }
}

// Rule 4: what does not fit is refused, and nothing enters.
TEST(PipelineFlow, InputsAreCheckedBeforeAnythingEnters) {
  PipelineSpec spec{.inputs = {float_port("image", {2})}, .groups = {{}}};
  spec.stages = {stage_of(
      "double",
      make_function_stage(make_packed([](NDArray x) { return x; }), {float_port("in", {2})}, {float_port("out", {2})}),
      {from_input(0)}, 0)};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  Pipeline pipeline(std::move(spec));
  const auto message = [&](std::vector<Value> inputs) {
    return message_thrown([&] { pipeline.submit(std::move(inputs)); });
  };
  EXPECT_THAT(message({}), HasSubstr("the pipeline takes 1 inputs (image), got 0"));
  EXPECT_THAT(message({Value(int64_t{1})}), HasSubstr("input 'image' is a int; it takes a tensor, float32 (2)"));
  EXPECT_THAT(message({Value(NDArray::zeros({3}, DataType::parse("float32")))}),
              HasSubstr("input 'image' has shape (3)"));
  EXPECT_THAT(message({Value(NDArray::zeros({2}, DataType::parse("int32")))}),
              HasSubstr("input 'image' has dtype int32"));
  EXPECT_EQ(pipeline.metrics().submitted, 0U);
  EXPECT_EQ(pipeline.metrics().in_flight, 0U);
}

// Rule 4: tensors are copied when they enter, so that callers may write to theirs at once.
TEST(PipelineFlow, InputsAreCopiedUnlessAskedNotTo) {
  Gate gate;
  std::atomic<const void*> seen = nullptr;
  const auto make = [&] {
    PipelineSpec spec{.inputs = {float_port("image", {2})}, .groups = {{}}};
    auto code = make_function_stage(make_packed([&](NDArray x) {
                                      seen = x.data<void>();
                                      gate.pass();
                                      return x.copy();
                                    }),
                                    {float_port("in", {2})}, {float_port("out", {2})});
    spec.stages = {stage_of("copy", std::move(code), {from_input(0)}, 0)};
    spec.outputs = {{.name = "y", .source = from_stage(0)}};
    return spec;
  };
  for (const bool keeps : {false, true}) {
    gate.close();
    Pipeline pipeline(make());
    const NDArray image = NDArray::from_vector<float>({2}, DataType::parse("float32"), {1, 2});
    const Ticket ticket = pipeline.submit({Value(image)}, {.keeps_inputs = keeps});
    image.data<float>()[0] = 7;
    gate.open();
    EXPECT_EQ(ticket.results()[0].as<NDArray>().data<float>()[0], keeps ? 7 : 1);
    EXPECT_EQ(seen.load() == image.data<void>(), keeps);
  }
}

// Rule 5: values meet because they belong to one request. One branch is late at random.
TEST(PipelineFlow, JoinsMatchByRequest) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}, {}, {}}};
  const auto slow = [](int every) {
    return number_code(1, [every](int64_t x) {
      if (x % every == 0) std::this_thread::sleep_for(100us);
      return x;
    });
  };
  spec.stages = {
      stage_of("a", adder(0), {from_input(0)}, 0), stage_of("b", slow(3), {from_stage(0)}, 1),
      stage_of("c", slow(5), {from_stage(0)}, 2),
      stage_of("join", number_code(3, [](int64_t x, int64_t y, int64_t z) { return x == y && y == z ? x : -1; }),
               {from_stage(1), from_stage(2), from_stage(0)}, 3)};
  spec.outputs = {{.name = "y", .source = from_stage(3)}, {.name = "skipped", .source = from_stage(0)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 7});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 500; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (int64_t i = 0; i < 500; ++i) {
    const std::vector<Value> results = tickets[static_cast<size_t>(i)].results();
    ASSERT_EQ(results.at(0).as<int64_t>(), i);
    ASSERT_EQ(results.at(1).as<int64_t>(), i);
  }
}

TEST(PipelineFlow, TwoInputsOfOneStageFromOneOutput) {
  PipelineSpec spec{.inputs = {any_port("x"), any_port("y")}, .groups = {{}}};
  spec.stages = {
      stage_of("a", number_code(2, [](int64_t x, int64_t y) { return x - y; }), {from_input(0), from_input(1)}, 0),
      stage_of("b", number_code(2, [](int64_t x, int64_t y) { return x * y; }), {from_stage(0), from_stage(0)}, 0)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec));
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{7}), Value(int64_t{3})})), 16);
}

TEST(PipelineFlow, SeveralOutputsOfOneStage) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}}};
  auto pair = make_function_stage(make_packed([](int64_t x) { return Array<Value>{Value(x + 1), Value(x + 2)}; }),
                                  {any_port("x")}, {any_port("first"), any_port("second")});
  spec.stages = {stage_of("pair", std::move(pair), {from_input(0)}, 0),
                 stage_of("add", adder(10), {from_stage(0, 1)}, 1)};
  spec.outputs = {{.name = "first", .source = from_stage(0, 0)}, {.name = "sum", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec));
  const std::vector<Value> results = pipeline.submit({Value(int64_t{0})}).results();
  EXPECT_EQ(results.at(0).as<int64_t>(), 1);
  EXPECT_EQ(results.at(1).as<int64_t>(), 12);
}

// A typed output goes from stage to stage in memory of the pipeline, and leaves it in memory of the caller's own.
TEST(PipelineFlow, TensorsBetweenStagesStayInTheirSlots) {
  std::mutex mutex;
  std::set<const void*> between;
  const auto typed = [](PackedFunc function) {
    return make_function_stage(std::move(function), {float_port("in", {4})}, {float_port("out", {4})});
  };
  PipelineSpec spec{.inputs = {float_port("x", {4})}, .groups = {{}, {}}};
  spec.stages = {stage_of("a", typed(make_packed([](NDArray x) { return x; })), {from_input(0)}, 0),
                 stage_of("b", typed(make_packed([&](NDArray x) {
                            const std::lock_guard lock(mutex);
                            between.insert(x.data<void>());
                            return x;
                          })),
                          {from_stage(0)}, 1)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec));
  std::set<const void*> results;
  std::vector<NDArray> kept;
  for (int i = 0; i < 50; ++i) {
    const auto x = NDArray::from_vector<float>({4}, DataType::parse("float32"), {float(i), 1, 2, 3});
    kept.push_back(pipeline.submit({Value(x)}).results()[0].as<NDArray>());
    results.insert(kept.back().data<void>());
  }
  EXPECT_EQ(between.size(), 17U);  // small tensors: a slot for every request, and the replica's
  EXPECT_EQ(results.size(), 50U);  // none is used again while the caller has it
  for (int i = 0; i < 50; ++i) EXPECT_EQ(kept[static_cast<size_t>(i)].data<float>()[0], float(i));
}

// Returns how many of 16 requests a stage works on while the stage behind it, in another thread, holds the first one.
int calls_ahead(const Port& port, const Value& value, WhenFull when_full) {
  Gate gate;
  std::atomic<int> calls = 0;
  const auto code = [&](PackedFunc function) { return make_function_stage(std::move(function), {port}, {port}); };
  PipelineSpec spec{.inputs = {port}, .groups = {{}, {}}};
  spec.stages = {stage_of("ahead", code(make_packed([&](Value x) {
                            ++calls;
                            return x;
                          })),
                          {from_input(0)}, 0),
                 stage_of("held", code(make_packed([&](Value x) {
                            gate.pass();
                            return x;
                          })),
                          {from_stage(0)}, 1)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 16, .when_full = when_full});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 16; ++i) tickets.push_back(pipeline.submit({value}));
  gate.await(1);
  int seen = 0;
  for (int still = 0; still < 20; still = calls == seen ? still + 1 : 0) {  // until it has stopped for 20 ms
    seen = calls;
    std::this_thread::sleep_for(1ms);
  }
  gate.open();
  for (const Ticket& ticket : tickets) ticket.wait();
  return seen;
}

// A thread that is woken finds several requests, where their values take little memory, and where none of them is to be
// dropped at the entrance for a newer one.
TEST(PipelineFlow, ChannelsBetweenThreadsAreQueuesWhereTheyAreSmall) {
  const Value number(int64_t{1}), row(NDArray::zeros({1024}, DataType::float_(32)));
  const Value large(NDArray::zeros({1 << 18}, DataType::float_(32)));
  EXPECT_EQ(calls_ahead(any_port("x"), number, WhenFull::wait), 16);
  EXPECT_EQ(calls_ahead(float_port("x", {1024}), row, WhenFull::wait), 16);
  EXPECT_EQ(calls_ahead(float_port("x", {1 << 18}), large, WhenFull::wait), 2);
  EXPECT_EQ(calls_ahead(any_port("x"), row, WhenFull::wait), 16);
  EXPECT_EQ(calls_ahead(any_port("x"), large, WhenFull::wait), 2) << "one is held, and one waits";
  EXPECT_EQ(calls_ahead(any_port("x"), Value(std::string("of unknown size")), WhenFull::wait), 2);
  EXPECT_EQ(calls_ahead(any_port("x"), number, WhenFull::reject), 16);
  EXPECT_EQ(calls_ahead(any_port("x"), number, WhenFull::drop_oldest), 2);
}

// A function may keep what it is given: the pipeline does not write to that memory again.
TEST(PipelineFlow, KeptTensorsStayAsTheyAre) {
  std::mutex mutex;
  std::vector<NDArray> kept;
  PipelineSpec spec{.inputs = {float_port("x", {1})}, .groups = {{}, {}}};
  spec.stages = {stage_of("a",
                          make_function_stage(make_packed([](NDArray x) { return x; }), {float_port("in", {1})},
                                              {float_port("out", {1})}),
                          {from_input(0)}, 0),
                 stage_of("keep",
                          make_function_stage(make_packed([&](NDArray x) {
                                                const std::lock_guard lock(mutex);
                                                kept.push_back(x);
                                                return x;
                                              }),
                                              {float_port("in", {1})}, {any_port("out")}),
                          {from_stage(0)}, 1)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec));
  std::vector<NDArray> results;
  for (int i = 0; i < 20; ++i) {
    const auto x = NDArray::from_vector<float>({1}, DataType::parse("float32"), {float(i)});
    results.push_back(pipeline.submit({Value(x)}).results()[0].as<NDArray>());
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(kept[static_cast<size_t>(i)].data<float>()[0], float(i));
    EXPECT_EQ(results[static_cast<size_t>(i)].data<float>()[0], float(i));
  }
}

// Rule 12: a request sees all new parameters or none, and says which request is the first.
TEST(PipelineFlow, ParametersChangeBetweenRequests) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}}};
  spec.params = {{.group = "weights", .port = float_port("a", {1})},
                 {.group = "weights", .port = float_port("b", {1})}};
  const auto scale = [] {
    return make_function_stage(make_packed([](int64_t x, NDArray w) { return x + int64_t(w.data<float>()[0]); }),
                               {any_port("x"), float_port("w", {1})}, {any_port("y")});
  };
  spec.stages = {stage_of("first", scale(), {from_input(0), from_param(0)}, 0),
                 stage_of("second", scale(), {from_stage(0), from_param(1)}, 1)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 4});
  const auto number = [](float value) { return NDArray::from_vector<float>({1}, DataType::parse("float32"), {value}); };
  EXPECT_THAT(message_thrown([&] { pipeline.submit({Value(int64_t{0})}); }),
              HasSubstr("parameter 'a' of group 'weights' has no value; call set_params first"));
  pipeline.set_params("weights", {{"a", number(0)}, {"b", number(0)}});

  std::atomic<bool> is_over = false;
  std::thread changer([&] {
    for (float i = 1; !is_over; ++i)
      pipeline.set_params("weights", {{"a", number(i * 1000)}, {"b", number(-i * 1000)}});
  });
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 1000; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i);
  is_over = true;
  changer.join();

  const NDArray five = number(5);
  EXPECT_EQ(pipeline.set_params("weights", {{"a", five}, {"b", number(6)}}), 1000U);
  five.data<float>()[0] = 77;  // is copied
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{0})})), 11);
  EXPECT_EQ(pipeline.set_params("weights", {{"b", number(7)}}), 1001U);  // the others stay
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{0})})), 12);
  EXPECT_THAT(message_thrown([&] { pipeline.set_params("biases", {}); }), HasSubstr("no parameter group 'biases'"));
  EXPECT_THAT(message_thrown([&] { pipeline.set_params("weights", {{"c", number(1)}}); }),
              HasSubstr("no parameter 'c'"));
  EXPECT_THAT(
      message_thrown([&] { pipeline.set_params("weights", {{"a", NDArray::zeros({2}, DataType::parse("float32"))}}); }),
      HasSubstr("parameter 'a' has shape (2)"));
}

TEST(PipelineFlow, ReplicasWorkAtOnceAndOrderHolds) {
  std::atomic<int> running = 0, most = 0;
  PipelineSpec spec = chain_of({adder(0), nullptr, adder(0)});
  spec.stages[1].replicas.clear();
  for (int i = 0; i < 3; ++i) {
    spec.stages[1].replicas.push_back(number_code(1, [&](int64_t x) {
      const int now = ++running;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(x * 37 % 300));
      --running;
      return x;
    }));
  }
  Pipeline pipeline(std::move(spec), {.max_inflight = 8});
  for (int64_t i = 0; i < 300; ++i) {
    pipeline.push({Value(i)});
    if (i >= 7) {
      ASSERT_EQ(number_of(*pipeline.next()), i - 7);
    }
  }
  EXPECT_EQ(most, 3);
  EXPECT_EQ(pipeline.metrics().stages[1].replicas, 3U);
}

// Replicas finish out of order, and another source waits for the same requests.
TEST(PipelineFlow, TwoSourcesOfWhichOneHasReplicas) {
  PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}, {}}};
  spec.stages = {stage_of("plain", adder(0), {from_input(0)}, 0), stage_of("many", nullptr, {from_input(0)}, 1)};
  spec.stages[1].replicas.clear();
  for (int i = 0; i < 3; ++i) {
    spec.stages[1].replicas.push_back(number_code(1, [](int64_t x) {
      if (x % 3 == 0) std::this_thread::sleep_for(50us);
      return x;
    }));
  }
  spec.outputs = {{.name = "a", .source = from_stage(0)}, {.name = "b", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec), {.max_inflight = 2});
  for (int64_t i = 0; i < 1000; ++i) pipeline.submit({Value(i)});
  EXPECT_TRUE(pipeline.drain(after(60s)));
  EXPECT_EQ(pipeline.metrics().succeeded, 1000U);
}

TEST(PipelineFlow, MetricsNameTheBottleneck) {
  const auto same = [](std::chrono::milliseconds time) {
    return number_code(1, [time](Value x) {
      std::this_thread::sleep_for(time);
      return x;
    });
  };
  Pipeline pipeline(chain_of({same(0ms), same(5ms), same(0ms)}));
  std::vector<Ticket> tickets;
  const Value value(std::string("of a size that no queue knows"));
  for (int64_t i = 0; i < 20; ++i) tickets.push_back(pipeline.submit({value}));
  for (const Ticket& ticket : tickets) ticket.wait();
  const PipelineMetrics metrics = pipeline.metrics();
  EXPECT_EQ(metrics.bottleneck, "s1");
  EXPECT_EQ(metrics.succeeded, 20U);
  EXPECT_EQ(metrics.submitted, 20U);
  for (const StageMetrics& stage : metrics.stages) EXPECT_EQ(stage.items, 20U);
  EXPECT_GE(metrics.stages[1].busy_ns, 100'000'000U);
  EXPECT_GE(metrics.stages[1].run.median, 5'000'000U);
  EXPECT_GT(metrics.stages[0].blocked_ns, 0U);  // waits for the slow stage
  EXPECT_GE(metrics.latency.most, metrics.latency.median);
}

TEST(PipelineFlow, UnreadTicketsAreBounded) {
  const PipelineOptions options{.max_inflight = 2, .max_unread = 3, .when_full = WhenFull::reject};
  Pipeline pipeline(chain_of({adder(1)}), options);
  std::vector<Ticket> tickets;
  const auto fill = [&] {
    while (true) {
      try {
        tickets.push_back(pipeline.submit({Value(int64_t{1})}));
        tickets.back().wait();
      } catch (const RefusedError& error) {
        return std::string(error.what());
      }
    }
  };
  EXPECT_THAT(fill(), ::testing::HasSubstr("the results of 5 requests are not read"));
  EXPECT_EQ(tickets.size(), 5U);
  EXPECT_EQ(number_of(tickets[0]), 2);  // read
  EXPECT_EQ(number_of(tickets[0]), 2);  // a second time counts for nothing
  EXPECT_THAT(fill(), ::testing::HasSubstr("max_unread"));
  EXPECT_EQ(tickets.size(), 6U);
  const Ticket copy = tickets[1];
  tickets.erase(tickets.begin() + 1);  // the copy has it still
  fill();
  EXPECT_EQ(tickets.size(), 5U);
  tickets.erase(tickets.begin() + 1, tickets.begin() + 3);  // nobody's any more
  fill();
  EXPECT_EQ(tickets.size(), 5U);
  EXPECT_EQ(number_of(copy), 2);
}

TEST(PipelineFlow, UnreadTicketsLetSubmitWait) {
  Pipeline pipeline(chain_of({adder(1)}), {.max_inflight = 1, .max_unread = 1});
  const Ticket first = pipeline.submit({Value(int64_t{1})});
  std::optional<Ticket> second = pipeline.submit({Value(int64_t{2})});
  second->wait();
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{3})}, {.place_until = after(20ms)}); }), "PipelineFull");
  EXPECT_FALSE(pipeline.wait_for_place(after(20ms)));
  std::thread reader([&] {
    std::this_thread::sleep_for(20ms);
    second.reset();
  });
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{3})}, {.place_until = after(30s)})), 4);
  reader.join();
  EXPECT_EQ(kind_thrown([&] { Pipeline(chain_of({adder(1)}), {.max_unread = 0}).submit({Value(int64_t{1})}); }), "");
}

TEST(PipelineFlow, AReadFailureCountsAsRead) {
  PipelineSpec spec = chain_of({number_code(1, [](int64_t x) {
    if (x < 0) throw_user_error("below zero");
    return x;
  })});
  Pipeline pipeline(std::move(spec), {.max_inflight = 1, .max_unread = 1, .when_full = WhenFull::reject});
  const Ticket failed = pipeline.submit({Value(int64_t{-1})});
  failed.wait();
  const Ticket other = pipeline.submit({Value(int64_t{1})});
  other.wait();
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{1})}); }), "PipelineFull");
  EXPECT_TRUE(failed.failure().has_value());
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{1})}); }), "");
}

// Writes 7 and returns the tensor that it was given as both of its outputs, or as one.
std::shared_ptr<StageCode> same_twice(size_t num_outputs) {
  std::vector<Port> outputs;
  for (size_t i = 0; i < num_outputs; ++i) outputs.push_back(any_port(fmt::format("y{}", i)));
  return make_function_stage(make_packed([num_outputs](const NDArray& x) {
                               return num_outputs == 1 ? Value(x) : Value(Array<Value>{Value(x), Value(x)});
                             }),
                             {any_port("x")}, outputs);
}

TEST(PipelineFlow, OutputsOfARequestShareNoMemory) {
  // One source is two outputs; two ports have one tensor; a stage's input is its output.
  PipelineSpec spec{.inputs = {float_port("x", {2})}};
  spec.stages.push_back(stage_of("twice", same_twice(2), {from_input(0)}, 0));
  spec.stages.push_back(stage_of("once", same_twice(1), {from_stage(0)}, 0));
  spec.outputs = {{.name = "a", .source = from_stage(0)},
                  {.name = "b", .source = from_stage(0)},
                  {.name = "c", .source = from_stage(0, 1)},
                  {.name = "d", .source = from_stage(1)}};
  spec.groups.resize(1);
  Pipeline pipeline(std::move(spec));
  const NDArray input = NDArray::zeros({2}, DataType::parse("float32"));
  const std::vector<Value> results = pipeline.submit({Value(input)}).results();
  ASSERT_EQ(results.size(), 4U);
  for (size_t i = 0; i < results.size(); ++i) results[i].as<NDArray>().data<float>()[1] = static_cast<float>(i) + 1;
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].as<NDArray>().data<float>()[0], 0.0F);
    EXPECT_EQ(results[i].as<NDArray>().data<float>()[1], static_cast<float>(i) + 1);
  }
}

}  // namespace
}  // namespace headrace::executors::pipeline
