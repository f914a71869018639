// Traces: their events beside the metrics, their rings, and their text.
#include "executors/pipeline/trace.h"

#include <gmock/gmock.h>

#include <atomic>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using Kind = TraceEvent::Kind;

std::vector<TraceEvent> of_lane(const Trace& trace, uint32_t lane) {
  std::vector<TraceEvent> events;
  for (const TraceEvent& event : trace.events) {
    if (event.lane == lane) events.push_back(event);
  }
  return events;
}

int64_t sum_of(const std::vector<TraceEvent>& events, Kind kind) {
  int64_t sum = 0;
  for (const TraceEvent& event : events) sum += event.kind == kind ? event.end_ns - event.begin_ns : 0;
  return sum;
}

// All times of the stages are in the trace, and add up to what the metrics say.
TEST(PipelineTrace, EventsAddUpToTheMetrics) {
  // Numbers as text, whose size no queue knows: the first stage waits for places.
  const auto same = [] { return number_code(1, [](Value x) { return x; }); };
  auto slow = number_code(1, [](std::string text) {
    const int64_t x = std::stoll(text) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds(x % 7 * 50));
    if (x % 40 == 39) throw_user_error("bad");
    return text;
  });
  Pipeline pipeline(chain_of({same(), std::move(slow), same()}), {.max_inflight = 8, .failures_in_row = 0});
  pipeline.start_trace();
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 200; ++i) tickets.push_back(pipeline.submit({Value(std::to_string(i))}));
  for (const Ticket& ticket : tickets) ticket.wait();
  EXPECT_TRUE(pipeline.stop().empty());
  const Trace trace = pipeline.stop_trace();
  const PipelineMetrics metrics = pipeline.metrics();
  EXPECT_EQ(trace.overwritten, 0U);
  ASSERT_EQ(trace.lanes.size(), 3U);
  for (uint32_t lane = 0; lane < 3; ++lane) {
    const StageMetrics& stage = metrics.stages[lane];
    EXPECT_EQ(trace.lanes[lane].stage, stage.name);
    EXPECT_EQ(trace.lanes[lane].group, lane);
    const std::vector<TraceEvent> events = of_lane(trace, lane);
    uint64_t calls = 0, failed = 0, next = 0;
    int64_t last = 0;
    for (const TraceEvent& event : events) {
      EXPECT_LE(last, event.begin_ns);  // times of a lane follow each other
      EXPECT_LE(event.begin_ns, event.end_ns);
      last = event.end_ns;
      if (event.kind == Kind::starved || event.kind == Kind::blocked) continue;
      ++calls;
      failed += event.kind == Kind::failed_call;
      EXPECT_GE(event.request, next);
      EXPECT_EQ(event.requests, 1U);
      next = event.request + 1;
    }
    EXPECT_EQ(calls, stage.items);
    EXPECT_EQ(failed, stage.errors);
    EXPECT_EQ(sum_of(events, Kind::call) + sum_of(events, Kind::failed_call), static_cast<int64_t>(stage.busy_ns));
    EXPECT_EQ(sum_of(events, Kind::blocked), static_cast<int64_t>(stage.blocked_ns));
    EXPECT_LE(sum_of(events, Kind::starved), static_cast<int64_t>(stage.starved_ns));  // it waited before, too
  }
  EXPECT_EQ(metrics.stages[1].errors, 5U);
  EXPECT_GT(metrics.stages[0].blocked_ns, 0U);
}

TEST(PipelineTrace, BatchesAndReplicas) {
  PackedFunc function = make_packed([](Array<Value> xs) { return xs; });
  PipelineSpec spec = chain_of({adder(0), make_batch_function_stage(function, {any_port("x")}, {any_port("y")})});
  spec.stages[1].replicas.push_back(make_batch_function_stage(function, {any_port("x")}, {any_port("y")}));
  spec.stages[1].batch = Batch{.max_batch = 4, .max_delay_seconds = 1000};
  spec.groups[1].name = "two";
  Pipeline pipeline(std::move(spec));
  pipeline.start_trace();
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 40; ++i) tickets.push_back(pipeline.submit({Value(i)}));
  for (const Ticket& ticket : tickets) ticket.wait();
  const Trace trace = pipeline.stop_trace();
  ASSERT_EQ(trace.lanes.size(), 3U);
  EXPECT_EQ(trace.lanes[1].stage, "s1");
  EXPECT_EQ(trace.lanes[2].stage, "s1 #2");
  EXPECT_EQ(trace.lanes[2].group_name, "two");
  std::vector<uint64_t> first;
  for (const uint32_t lane : {1U, 2U}) {
    for (const TraceEvent& event : of_lane(trace, lane)) {
      if (event.kind != Kind::call) continue;
      EXPECT_EQ(event.requests, 4U);
      first.push_back(event.request);
    }
  }
  std::sort(first.begin(), first.end());
  EXPECT_THAT(first, ::testing::ElementsAre(0, 4, 8, 12, 16, 20, 24, 28, 32, 36));
}

TEST(PipelineTrace, BeginsAndEndsWhenAsked) {
  Pipeline pipeline(chain_of({adder(1)}));
  const auto calls = [](const Trace& trace) {
    return std::count_if(trace.events.begin(), trace.events.end(),
                         [](const TraceEvent& event) { return event.kind == Kind::call; });
  };
  const auto submit = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) pipeline.submit({Value(i)}).wait();
  };
  EXPECT_TRUE(pipeline.trace().events.empty());
  submit(3);
  pipeline.start_trace();
  EXPECT_EQ(message_thrown([&] { pipeline.start_trace(); }),
            "the pipeline records a trace already; stop that one first");
  submit(5);
  EXPECT_EQ(calls(pipeline.trace()), 5);
  submit(2);
  EXPECT_EQ(calls(pipeline.stop_trace()), 7);
  submit(4);
  EXPECT_TRUE(pipeline.trace().events.empty());
  pipeline.start_trace();
  submit(1);
  EXPECT_EQ(calls(pipeline.stop_trace()), 1);
}

TEST(PipelineTrace, ARingKeepsTheLastEventsAndCountsTheOthers) {
  TraceRing ring;
  const auto add = [&](uint64_t count) {
    for (uint64_t i = 0; i < count; ++i)
      ring.add({.begin_ns = 5,
                .end_ns = -7,
                .request = ring.size(),
                .requests = 65536,
                .lane = 70000,
                .kind = Kind::blocked});
  };
  std::vector<TraceEvent> events;
  add(3);
  EXPECT_EQ(ring.read(1, events), 0U);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].request, 1U);
  EXPECT_EQ(events[0].begin_ns, 5);
  EXPECT_EQ(events[0].end_ns, -7);
  EXPECT_EQ(events[0].requests, 65536U);
  EXPECT_EQ(events[0].lane, 70000U);
  EXPECT_EQ(events[0].kind, Kind::blocked);
  add(TraceRing::kEvents);
  EXPECT_EQ(ring.read(1, events), 2U);
  ASSERT_EQ(events.size(), 2 + TraceRing::kEvents);
  EXPECT_EQ(events[2].request, 3U);
  EXPECT_EQ(events.back().request, TraceRing::kEvents + 2);
}

// A reader never sees an event that was partly overwritten meanwhile.
TEST(PipelineTrace, ReadingWhileEventsAreAdded) {
  TraceRing ring;
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    for (int64_t i = 0; !is_over; ++i)
      ring.add({.begin_ns = i, .end_ns = 2 * i, .request = static_cast<uint64_t>(3 * i)});
  });
  while (ring.size() < 2 * TraceRing::kEvents) std::this_thread::yield();
  for (int round = 0; round < 20; ++round) {
    std::vector<TraceEvent> events;
    const uint64_t overwritten = ring.read(0, events);
    auto expected = static_cast<int64_t>(overwritten);
    for (const TraceEvent& event : events) {
      ASSERT_EQ(event.begin_ns, expected);
      ASSERT_EQ(event.end_ns, 2 * expected);
      ASSERT_EQ(event.request, static_cast<uint64_t>(3 * expected));
      ++expected;
    }
  }
  is_over = true;
  writer.join();
}

TEST(PipelineTrace, TheTextIsInTheTraceEventFormat) {
  const Trace trace{
      .lanes = {{.stage = "say \"hi\"", .group = 2, .group_name = "host"}},
      .events = {{.begin_ns = 500, .end_ns = 3000, .request = 7, .requests = 4},
                 {.begin_ns = 3000, .end_ns = 4500, .kind = Kind::starved},
                 {.begin_ns = 4500, .end_ns = 4501, .request = 9, .requests = 1, .kind = Kind::failed_call}},
      .overwritten = 6,
      .begin_ns = 1000,
      .end_ns = 2001000};
  EXPECT_EQ(chrome_trace(trace),
            R"({"displayTimeUnit":"ms","otherData":{"overwritten_events":6,"seconds":0.002000000},
"traceEvents":[
{"ph":"M","name":"process_name","pid":2,"tid":0,"args":{"name":"group host"}},
{"ph":"M","name":"thread_name","pid":2,"tid":0,"args":{"name":"say \"hi\""}},
{"ph":"M","name":"thread_sort_index","pid":2,"tid":0,"args":{"sort_index":0}},
{"ph":"X","name":"say \"hi\"","cat":"call","pid":2,"tid":0,"ts":0.000,"dur":2.000,"args":{"request":7,"requests":4,"failed":false}},
{"ph":"X","name":"starved","cat":"wait","pid":2,"tid":0,"ts":2.000,"dur":1.500,"args":{}},
{"ph":"X","name":"say \"hi\"","cat":"call","pid":2,"tid":0,"ts":3.500,"dur":0.001,"args":{"request":9,"requests":1,"failed":true}}
]}
)");
}

}  // namespace
}  // namespace headrace::executors::pipeline
