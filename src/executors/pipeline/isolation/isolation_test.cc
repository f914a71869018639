// Stages in processes of their own: what they compute, how they end, and that nothing of them is left.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "executors/pipeline/isolation/process_stage.h"
#include "executors/pipeline/test_stages.h"
#include "base/temporary_name.h"
#include "kit/options.h"

namespace headrace::executors::pipeline::isolation {
namespace {

using namespace pipeline::testing;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Which end a call of the code "double" has, by its input.
constexpr int64_t kCrash = -1, kExit = -2, kHang = -3, kThrow = -4, kKill = -5, kFalseLoss = -6, kAbort = -7,
                  kLongError = -8;

std::string host_program() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "test-stage-host"; }

std::shared_ptr<StageCode> code_of(std::vector<std::string> words, const ProcessOptions& options = {}) {
  words.insert(words.begin(), host_program());
  return make_process_stage({.words = std::move(words)}, options);
}

Pipeline pipeline_of(std::vector<std::string> words, const ProcessOptions& options = {},
                     const PipelineOptions& of_pipeline = {.failures_in_row = 0}) {
  return Pipeline(chain_of({code_of(std::move(words), options)}), of_pipeline);
}

// A folder that goes with its files.
class OwnFolder {
 public:
  OwnFolder() {
    std::string name = temporary_name(std::filesystem::temp_directory_path() / "headrace-");
    path_ = ::mkdtemp(name.data());
  }
  ~OwnFolder() { std::filesystem::remove_all(path_); }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  std::string path(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// Counts the resources of a process beside its memory. After all stages have ended, the counts are as before.
struct Belongings {
  size_t descriptors = 0, threads = 0, mappings = 0;
  bool has_children = false;
  bool operator==(const Belongings&) const = default;
};

void PrintTo(const Belongings& found, std::ostream* out) {
  *out << found.descriptors << " descriptors, " << found.threads << " threads, " << found.mappings << " mappings"
       << (found.has_children ? ", children" : "");
}

Belongings belongings() {
  // ThreadSanitizer starts a thread of its own with the first one.
  [[maybe_unused]] static const bool has_threads = (std::thread([] {}).join(), true);
  const auto count = [](const char* folder) {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  };
  Belongings found{.descriptors = count("/proc/self/fd"), .threads = count("/proc/self/task")};
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) found.mappings += line.find("headrace-stage") != std::string::npos;
  siginfo_t info{};
  found.has_children = ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  return found;
}

// Returns what the process has before a test starts anything. The system lists a thread that was joined for a moment
// more, so this waits until nothing has changed for 20 ms.
Belongings settled_belongings() {
  Belongings found = belongings();
  const Until end = after(5s);
  for (int unchanged = 0; unchanged < 20 && Clock::now() < *end; ++unchanged) {
    std::this_thread::sleep_for(1ms);
    const Belongings now = belongings();
    if (now != found) unchanged = 0;
    found = now;
  }
  return found;
}

// Returns what the process has now. The system lists a thread that was joined for a moment more, so this waits for it.
Belongings left_of(const Belongings& before) {
  const Until end = after(5s);
  while (belongings() != before && Clock::now() < *end) std::this_thread::sleep_for(1ms);
  return belongings();
}

bool is_alive(int64_t pid) { return pid > 0 && ::kill(static_cast<pid_t>(pid), 0) == 0; }

int64_t pid_of(const Pipeline& pipeline) { return pipeline.metrics().stages.at(0).pids.at(0); }

FailureKind kind_of(const Ticket& ticket) {
  ticket.wait();
  const std::optional<Failure> failure = ticket.failure();
  EXPECT_TRUE(failure.has_value());
  return failure.has_value() ? failure->kind : FailureKind::cancelled;
}

std::string text_of(const Ticket& ticket) {
  ticket.wait();
  return ticket.failure().has_value() ? message_of(*ticket.failure()) : "";
}

TEST(PipelineIsolation, AStageInAProcessComputesAsOneInAThread) {
  const Belongings before = settled_belongings();
  {
    Pipeline pipeline(chain_of({adder(1), code_of({"double"}), adder(2)}));
    std::vector<Ticket> tickets;
    for (int64_t i = 0; i < 300; ++i) tickets.push_back(pipeline.submit({Value(i)}));
    for (int64_t i = 0; i < 300; ++i) ASSERT_EQ(number_of(tickets[static_cast<size_t>(i)]), (i + 1) * 2 + 2);
    const StageMetrics metrics = pipeline.metrics().stages[1];
    EXPECT_TRUE(is_alive(metrics.pids.at(0)));
    EXPECT_NE(metrics.pids[0], ::getpid());
    EXPECT_EQ(metrics.restarts, 0U);
    EXPECT_TRUE(pipeline.metrics().stages[0].pids.empty());
  }
  EXPECT_EQ(left_of(before), before);
}

TEST(PipelineIsolation, ValuesPassAsTheyAre) {
  Pipeline pipeline = pipeline_of({"echo"});
  const auto passed = [&](const Value& value) { return pipeline.submit({value}).results().at(0); };
  EXPECT_TRUE(passed(Value()).is_none());
  EXPECT_EQ(passed(Value(true)).type_index(), type_index::kBool);
  EXPECT_EQ(passed(Value(int64_t{-7})).as<int64_t>(), -7);
  EXPECT_EQ(passed(Value(0.25)).as<double>(), 0.25);
  EXPECT_EQ(passed(Value("a text that is longer than seven letters")).as<std::string>(),
            "a text that is longer than seven letters");
  EXPECT_EQ(passed(Value(Bytes{std::string("\0\xff", 2)})).as<Bytes>().data, std::string("\0\xff", 2));
  const auto list = passed(Value(Array<Value>{Value(int64_t{1}), Value(Array<Value>{Value("x")})})).as<Array<Value>>();
  EXPECT_EQ(list.at(1).as<Array<Value>>().at(0).as<std::string>(), "x");
  const NDArray tensor = NDArray::from_vector<float>({2, 2}, DataType::parse("float32"), {1, 2, 3, 4});
  EXPECT_TRUE(passed(Value(tensor)).as<NDArray>().content_equal(tensor));
  const NDArray none = NDArray::zeros({0, 3}, DataType::parse("float16"));
  EXPECT_TRUE(passed(Value(none)).as<NDArray>().content_equal(none));
}

TEST(PipelineIsolation, ValuesThatCannotPassAreErrorsOfTheirRequest) {
  Pipeline pipeline = pipeline_of({"echo"}, {.most_bytes = 4096});
  const int64_t pid = pid_of(pipeline);
  const Ticket function = pipeline.submit({Value(make_packed([](int64_t x) { return x; }))});
  EXPECT_EQ(kind_of(function), FailureKind::stage_failed);
  EXPECT_THAT(text_of(function), HasSubstr("cannot pass to a stage in a process of its own; pass tensors, numbers"));
  const Ticket large = pipeline.submit({Value(NDArray::zeros({8 << 20}, DataType::parse("uint8")))});
  EXPECT_EQ(kind_of(large), FailureKind::stage_failed);
  EXPECT_THAT(text_of(large), HasSubstr("bytes that a call of a stage in a process of its own may have"));
  EXPECT_EQ(pipeline.submit({Value(int64_t{5})}).results().at(0).as<int64_t>(), 5);
  EXPECT_EQ(pid_of(pipeline), pid);
}

TEST(PipelineIsolation, TensorsOfATypeAreWrittenInPlace) {
  PipelineSpec spec{.inputs = {float_port("x", {2, 3})}, .groups = {{}}};
  spec.stages = {stage_of("t", code_of({"tensor"}), {from_input(0)}, 0)};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  Pipeline pipeline(std::move(spec));
  std::vector<Ticket> tickets;
  for (int i = 0; i < 40; ++i)
    tickets.push_back(pipeline.submit({Value(NDArray::from_vector<float>(
        {2, 3}, DataType::parse("float32"), std::vector<float>(6, static_cast<float>(i))))}));
  for (int i = 0; i < 40; ++i)
    ASSERT_EQ(tickets[static_cast<size_t>(i)].results().at(0).as<NDArray>().data<float>()[5], static_cast<float>(i));
}

// Rule 6: an error of the code is one of its request, and the process goes on.
TEST(PipelineIsolation, ErrorsOfTheCodeArriveAndKeepTheProcess) {
  Pipeline pipeline = pipeline_of({"double"});
  const int64_t pid = pid_of(pipeline);
  const Ticket failed = pipeline.submit({Value(kThrow)});
  EXPECT_EQ(kind_of(failed), FailureKind::stage_failed);
  EXPECT_EQ(text_of(failed), "request 0 failed in stage 's0': four is bad");
  EXPECT_EQ(kind_of(pipeline.submit({Value(kFalseLoss)})), FailureKind::stage_failed);
  EXPECT_EQ(kind_of(pipeline.submit({Value("no number")})), FailureKind::stage_failed);
  const Ticket long_error = pipeline.submit({Value(kLongError)});
  EXPECT_EQ(kind_of(long_error), FailureKind::stage_failed);
  EXPECT_LT(text_of(long_error).size(), size_t{20'000});
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{4})})), 8);
  EXPECT_EQ(pid_of(pipeline), pid);
  EXPECT_EQ(pipeline.metrics().stages[0].restarts, 0U);
}

// Rule 8: only the request that was in the process is lost; the process starts again for the next one.
TEST(PipelineIsolation, ACrashLosesItsRequestOnly) {
  const std::pair<int64_t, const char*> ends[] = {{kCrash, "its process was killed by signal 11 (Segmentation fault)"},
                                                  {kExit, "its process ended with exit code 3"},
                                                  {kKill, "its process was killed by signal 9 (Killed)"},
                                                  {kAbort, "its process was killed by signal 6 (Aborted)"}};
  for (const auto& [end, text] : ends) {
    SCOPED_TRACE(text);
    const Belongings before = settled_belongings();
    {
      Pipeline pipeline = pipeline_of({"double"});
      const int64_t pid = pid_of(pipeline);
      std::vector<Ticket> tickets;
      for (int64_t i = 0; i < 12; ++i) tickets.push_back(pipeline.submit({Value(i == 5 ? end : i)}));
      for (int64_t i = 0; i < 12; ++i) {
        if (i != 5) {
          EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i * 2);
        }
      }
      EXPECT_EQ(kind_of(tickets[5]), FailureKind::stage_lost);
      EXPECT_THAT(text_of(tickets[5]), HasSubstr(fmt::format("request 5 was lost in stage 's0': {}", text)));
      EXPECT_EQ(kind_thrown([&] { tickets[5].results(); }), "StageLost");
      const StageMetrics metrics = pipeline.metrics().stages[0];
      EXPECT_EQ(metrics.restarts, 1U);
      EXPECT_NE(metrics.pids[0], pid);
      EXPECT_FALSE(is_alive(pid));
      EXPECT_EQ(pipeline.metrics().failed, 1U);
    }
    EXPECT_EQ(left_of(before), before);
  }
}

// The process may be killed before it has read a call.
TEST(PipelineIsolation, AProcessThatIsKilledBetweenCallsIsStartedAgain) {
  Pipeline pipeline = pipeline_of({"double"}, {.is_pure = true});
  for (int64_t i = 0; i < 5; ++i) {
    ::kill(static_cast<pid_t>(pid_of(pipeline)), SIGKILL);
    EXPECT_EQ(number_of(pipeline.submit({Value(i)})), i * 2);
  }
  EXPECT_EQ(pipeline.metrics().stages[0].restarts, 5U);
}

TEST(PipelineIsolation, APureStageRunsItsRequestAgain) {
  const OwnFolder folder;
  const std::string file = folder.path("crashes");
  for (const bool is_pure : {true, false}) {
    std::ofstream(file) << "ab";
    Pipeline pipeline = pipeline_of({"crash_at_first", file}, {.is_pure = is_pure});
    const Ticket first = pipeline.submit({Value(int64_t{4})});
    if (is_pure) {
      EXPECT_EQ(number_of(first), 8);
    } else {
      EXPECT_EQ(kind_of(first), FailureKind::stage_lost);
      EXPECT_EQ(kind_of(pipeline.submit({Value(int64_t{5})})), FailureKind::stage_lost);
    }
    EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{6})})), 12);
    EXPECT_EQ(pipeline.metrics().stages[0].restarts, 2U);
  }
}

// A request that always ends its process is not run for ever.
TEST(PipelineIsolation, ARequestThatAlwaysCrashesEndsAfterItsReplays) {
  Pipeline pipeline = pipeline_of({"double"}, {.is_pure = true});
  const Ticket poison = pipeline.submit({Value(kCrash)});
  EXPECT_EQ(kind_of(poison), FailureKind::stage_lost);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{3})})), 6);
  EXPECT_EQ(pipeline.metrics().stages[0].restarts, static_cast<uint64_t>(kMostReplays) + 1);
}

// The replays of a request count as one end of the process, so that requests behind it are computed.
TEST(PipelineIsolation, RequestsThatCrashInARowTakeNoOtherWithThem) {
  Pipeline pipeline = pipeline_of({"double"}, {.is_pure = true}, {.failures_in_row = 0});
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_THAT(text_of(pipeline.submit({Value(kCrash)})), Not(HasSubstr("is not started again yet")));
    EXPECT_THAT(text_of(pipeline.submit({Value(kCrash)})), Not(HasSubstr("is not started again yet")));
    EXPECT_EQ(number_of(pipeline.submit({Value(i)})), 2 * i);
  }
}

// Nothing was under way, so nothing is lost, also where a call must not be made twice.
TEST(PipelineIsolation, AProcessThatEndsAtRestCostsNoRequest) {
  Pipeline pipeline = pipeline_of({"double"}, {.is_pure = false});
  for (int64_t i = 1; i < 4; ++i) {
    EXPECT_EQ(number_of(pipeline.submit({Value(i)})), 2 * i);
    const int64_t pid = pid_of(pipeline);
    ASSERT_EQ(::kill(static_cast<pid_t>(pid), SIGKILL), 0);
    std::this_thread::sleep_for(100ms);  // a zombie until the stage looks
  }
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{9})})), 18);
}

// Restarts are bounded, then the breaker refuses requests; a probe that succeeds ends that.
TEST(PipelineIsolation, CrashesInARowOpenTheBreaker) {
  Pipeline pipeline = pipeline_of({"double"}, {.most_restarts = 2}, {.failures_in_row = 4, .probe_seconds = 0.05});
  std::vector<std::string> texts;
  for (int i = 0; i < 4; ++i) texts.push_back(text_of(pipeline.submit({Value(kExit)})));
  EXPECT_THAT(texts[3], HasSubstr("its process has ended 3 times in a row, and is not started again yet"));
  EXPECT_EQ(pipeline.state(), State::degraded);
  EXPECT_THAT(message_thrown([&] { pipeline.submit({Value(int64_t{1})}); }), HasSubstr("stage 's0' does not work"));
  const Until end = after(10s);
  while (pipeline.state() != State::running && Clock::now() < *end) {
    std::this_thread::sleep_for(60ms);
    kind_thrown([&] { pipeline.submit({Value(int64_t{1})}).wait(); });
  }
  EXPECT_EQ(pipeline.state(), State::running);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{2})})), 4);
}

// Rule 9: a process that hangs is killed, and only its request times out.
TEST(PipelineIsolation, AHangIsKilledAtTheTimeLimit) {
  Pipeline pipeline = pipeline_of({"double"}, {.is_pure = true, .time_limit_seconds = 0.2});
  const int64_t pid = pid_of(pipeline);
  const Ticket before = pipeline.submit({Value(int64_t{1})});
  const Ticket hanging = pipeline.submit({Value(kHang)});
  const Ticket behind = pipeline.submit({Value(int64_t{2})});
  EXPECT_EQ(number_of(before), 2);
  EXPECT_EQ(kind_of(hanging), FailureKind::stage_timeout);
  EXPECT_EQ(text_of(hanging), "request 1 ended because stage 's0' took longer than its time limit");
  EXPECT_THAT(hanging.failure()->cause->message, HasSubstr("took longer than its time limit of 0.2 seconds"));
  EXPECT_EQ(number_of(behind), 4);
  EXPECT_EQ(pipeline.state(), State::running);
  EXPECT_FALSE(is_alive(pid));
  EXPECT_EQ(pipeline.metrics().stages[0].restarts, 1U);
}

TEST(PipelineIsolation, ATimeLimitOfThePipelineIsRefused) {
  PipelineSpec spec = chain_of({code_of({"double"})});
  spec.stages[0].time_limit_seconds = 1;
  EXPECT_THAT(message_thrown([&] { check_spec(spec); }), HasSubstr("give the limit to the code"));
}

// Rule 11: stop() with a time, and the destructor, end a call that hangs without a time limit.
TEST(PipelineIsolation, StopAndTheDestructorEndACallThatHangs) {
  const Belongings before = settled_belongings();
  for (const bool is_stopped : {true, false}) {
    auto pipeline = std::make_unique<Pipeline>(chain_of({code_of({"double"})}),
                                               PipelineOptions{.failures_in_row = 0, .stop_seconds = 0.2});
    const Ticket hanging = pipeline->submit({Value(kHang)});
    std::this_thread::sleep_for(50ms);
    if (is_stopped) {
      EXPECT_TRUE(pipeline->stop(after(100ms)).empty());
    }
    pipeline.reset();
    EXPECT_EQ(kind_of(hanging), FailureKind::stopped);
    EXPECT_EQ(left_of(before), before);
  }
}

// The process of a stage that a pipeline has stopped is gone, and another pipeline starts one.
TEST(PipelineIsolation, AStoppedPipelineHasNoProcess) {
  const Belongings before = settled_belongings();
  const std::shared_ptr<StageCode> code = code_of({"double"});
  for (int64_t i = 0; i < 3; ++i) {
    Pipeline pipeline(chain_of({code}));
    EXPECT_EQ(number_of(pipeline.submit({Value(i)})), i * 2);
    if (i == 1) {
      pipeline.drain();
    } else {
      pipeline.stop();
    }
    EXPECT_EQ(left_of(before), before);
    EXPECT_EQ(code->process()->pid, 0);
  }
  EXPECT_EQ(code->process()->restarts, 0U);
}

// Rule 14: a process that was forked since leaves the stage's process alone.
TEST(PipelineIsolation, AForkedProcessDoesNotTouchIt) {
  auto pipeline = std::make_unique<Pipeline>(chain_of({code_of({"double"})}));
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_stopped = pipeline->state() == State::stopped;
    pipeline.reset();
    ::_exit(is_stopped ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(number_of(pipeline->submit({Value(int64_t{4})})), 8);
  EXPECT_EQ(pipeline->metrics().stages[0].restarts, 0U);
}

TEST(PipelineIsolation, BatchesPassAndFailAsInAThread) {
  const auto spec_of = [](const ProcessOptions& options, bool retry_alone) {
    PipelineSpec spec = chain_of({code_of({"batch"}, options)});
    spec.stages[0].batch = Batch{.max_batch = 4, .max_delay_seconds = 10, .retry_alone = retry_alone};
    return spec;
  };
  Pipeline pipeline(spec_of({}, false), {.failures_in_row = 0});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 12; ++i) tickets.push_back(pipeline.submit({Value(i == 6 ? kExit : i)}));
  for (int64_t i = 0; i < 12; ++i) {
    const Ticket& ticket = tickets[static_cast<size_t>(i)];
    if (i / 4 != 1) {
      EXPECT_EQ(number_of(ticket), i * 2);
    } else {
      EXPECT_EQ(kind_of(ticket), FailureKind::stage_lost);
      EXPECT_THAT(text_of(ticket), HasSubstr("in a batch of 4 requests, from 4 to 7: its process ended"));
    }
  }
  Pipeline alone(spec_of({}, true), {.failures_in_row = 0});
  tickets.clear();
  for (int64_t i = 0; i < 4; ++i) tickets.push_back(alone.submit({Value(i == 2 ? kExit : i)}));
  for (int64_t i = 0; i < 4; ++i) {
    if (i != 2) {
      EXPECT_EQ(number_of(tickets[static_cast<size_t>(i)]), i * 2);
    }
  }
  EXPECT_EQ(kind_of(tickets[2]), FailureKind::stage_lost);
}

TEST(PipelineIsolation, ReplicasHaveAProcessEach) {
  PipelineSpec spec = chain_of({code_of({"double"})});
  for (int i = 0; i < 2; ++i) spec.stages[0].replicas.push_back(code_of({"double"}));
  Pipeline pipeline(std::move(spec), {.failures_in_row = 0});
  std::vector<Ticket> tickets;
  for (int64_t i = 0; i < 60; ++i) tickets.push_back(pipeline.submit({Value(i % 20 == 7 ? kKill : i)}));
  for (int64_t i = 0; i < 60; ++i) {
    const Ticket& ticket = tickets[static_cast<size_t>(i)];
    if (i % 20 != 7) {
      ASSERT_EQ(number_of(ticket), i * 2);
    } else {
      EXPECT_EQ(kind_of(ticket), FailureKind::stage_lost);
    }
  }
  const StageMetrics metrics = pipeline.metrics().stages[0];
  EXPECT_EQ(metrics.pids.size(), 3U);
  EXPECT_EQ(metrics.restarts + static_cast<uint64_t>(std::count(metrics.pids.begin(), metrics.pids.end(), 0)), 3U);
}

// ---- Processes that do not start.

TEST(PipelineIsolation, AProcessThatDoesNotStartIsAnError) {
  const Belongings before = settled_belongings();
  EXPECT_THAT(
      message_thrown([] { make_process_stage({.words = {"/nowhere/host"}}); }),
      HasSubstr("the program '/nowhere/host', which runs a stage in a process of its own, cannot be started: No "
                "such file or directory"));
  EXPECT_THAT(message_thrown([] { code_of({"nothing"}); }),
              HasSubstr("a stage in a process of its own cannot start: there is no code 'nothing'"));
  EXPECT_THAT(message_thrown([] { code_of({"exits"}); }), HasSubstr("ended with exit code 7 before it took requests"));
  EXPECT_THAT(message_thrown([] { code_of({"sleeps"}, {.start_seconds = 0.2}); }),
              HasSubstr("was not ready after 0.2 seconds before it took requests"));
  EXPECT_THAT(message_thrown([&] { make_process_stage({.words = {"/bin/true"}}); }),
              HasSubstr("ended with exit code 0 before it took requests"));
  EXPECT_EQ(left_of(before), before);
}

// A process that cannot be started again loses the request, and the pipeline stops all the same.
TEST(PipelineIsolation, AProcessThatDoesNotStartAgainLosesItsRequests) {
  const OwnFolder folder;
  const Belongings before = settled_belongings();
  {
    Pipeline pipeline = pipeline_of({"sleeps_next", folder.path("started")}, {.start_seconds = 0.2});
    EXPECT_EQ(kind_of(pipeline.submit({Value(kExit)})), FailureKind::stage_lost);
    const Ticket second = pipeline.submit({Value(int64_t{1})});
    EXPECT_EQ(kind_of(second), FailureKind::stage_lost);
    EXPECT_THAT(text_of(second), HasSubstr("was not ready after 0.2 seconds"));
  }
  {
    Pipeline pipeline(chain_of({code_of({"sleeps_next", folder.path("again")})}),
                      {.failures_in_row = 0, .stop_seconds = 0.2});
    EXPECT_EQ(kind_of(pipeline.submit({Value(kExit)})), FailureKind::stage_lost);
    pipeline.submit({Value(int64_t{1})});
    std::this_thread::sleep_for(50ms);
  }
  EXPECT_EQ(left_of(before), before);
}

// ---- Processes that talk nonsense.

TEST(PipelineIsolation, NonsenseAtTheStartIsAnError) {
  const Belongings before = settled_belongings();
  for (const char* way :
       {"ready_epoch", "ready_nbytes", "ready_kind", "ports_shape", "ports_batch", "ports_memory", "ports_huge"})
    EXPECT_THAT(message_thrown([&] { code_of({"wrong", way}); }),
                AnyOf(HasSubstr("sent a message that no stage sends"), HasSubstr("cannot start: "),
                      HasSubstr("larger than any memory")))
        << way;
  EXPECT_EQ(left_of(before), before);
}

TEST(PipelineIsolation, NonsenseInsteadOfAnAnswerLosesTheRequest) {
  const std::pair<const char*, const char*> ways[] = {
      {"short", "sent a message that no stage sends"},      {"long", "sent a message that no stage sends"},
      {"magic", "sent a message that no stage sends"},      {"kind", "sent a message that no stage sends"},
      {"ready_again", "answered a call that was not made"}, {"epoch", "answered a call that was not made"},
      {"sequence", "answered a call that was not made"},    {"nbytes", "answered a call that was not made"},
      {"no_error", "gave an answer that cannot be read"},   {"nothing", "fewer values than it should"},
      {"deep", "arrays in arrays, too many of them"},       {"long_text", "a value past its end"},
      {"vanish", "its process ended with exit code 0"},     {"close", "its process was killed by signal 9"},
  };
  for (const auto& [way, text] : ways) {
    SCOPED_TRACE(way);
    const Belongings before = settled_belongings();
    {
      Pipeline pipeline = pipeline_of({"wrong", way});
      for (int i = 0; i < 2; ++i) {
        const Ticket ticket = pipeline.submit({Value(int64_t{1})});
        EXPECT_EQ(kind_of(ticket), FailureKind::stage_lost);
        EXPECT_THAT(text_of(ticket), HasSubstr(text));
      }
    }
    EXPECT_EQ(left_of(before), before);
  }
}

TEST(PipelineIsolation, AnswersToOlderCallsAreDropped) {
  for (const char* way : {"stale", "twice", "shrink", "right"}) {
    SCOPED_TRACE(way);
    Pipeline pipeline = pipeline_of({"wrong", way});
    for (int i = 0; i < 20; ++i) ASSERT_EQ(number_of(pipeline.submit({Value(int64_t{i})})), 42);
    EXPECT_EQ(pipeline.metrics().stages[0].restarts, 0U);
  }
}

TEST(PipelineIsolation, TensorsOfAnotherTypeLoseTheRequest) {
  const auto run = [](const char* way) {
    PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
    spec.stages = {stage_of("t", code_of({"wrong", way}), {from_input(0)}, 0)};
    spec.outputs = {{.name = "y", .source = from_stage(0)}};
    Pipeline pipeline(std::move(spec));
    const Ticket ticket = pipeline.submit({Value(int64_t{1})});
    const std::string text = text_of(ticket);
    return text.empty() ? fmt::format("{}", fmt::join(ticket.results().at(0).as<NDArray>().shape(), ",")) : text;
  };
  EXPECT_THAT(run("tensor_dtype"), HasSubstr("output 'y' is int32 (2, 3), not float32 (2, 3)"));
  EXPECT_THAT(run("tensor_large"), HasSubstr("output 'y' is float32 (2, 4), not float32 (2, 3)"));
  EXPECT_THAT(run("tensor_rank"), HasSubstr("output 'y' is float32 (6), not float32 (2, 3)"));
  EXPECT_THAT(run("tensor_none"), HasSubstr("no tensor where one should be"));
  EXPECT_EQ(run("tensor_small"), "2,1");  // outputs may be smaller than their bound
}

// Whatever bytes a process leaves in the memory, its request has an outcome. Counts lost processes, not requests, since
// each further loss waits longer for the next process.
TEST(PipelineIsolation, AnyBytesAreAnAnswerOrALoss) {
  Pipeline pipeline = pipeline_of({"wrong", "garbage"}, {.most_restarts = 1'000'000});
  const int most_lost = kit::case_count(5, 40);
  int lost = 0;
  for (int64_t i = 0; lost < most_lost && i < 20'000; ++i) {
    const Ticket ticket = pipeline.submit({Value(i)});
    ticket.wait();
    if (!ticket.failure().has_value()) continue;
    ++lost;
    ASSERT_THAT(kind_of(ticket), AnyOf(FailureKind::stage_lost, FailureKind::stage_failed));
  }
  EXPECT_EQ(lost, most_lost);
}

// Rules 8 and 11 together: kills at any time, and every request has one outcome.
TEST(PipelineIsolation, KillsAtRandomTimesLoseNothingElse) {
  const Belongings before = settled_belongings();
  const int kills = kit::case_count(12, 1000);
  for (const bool is_pure : {true, false}) {
    Pipeline pipeline = pipeline_of({"double"}, {.is_pure = is_pure, .most_restarts = 1000});
    std::atomic<bool> is_over = false;
    std::atomic<int64_t> succeeded = 0;
    std::thread killer([&] {
      uint32_t state = 7;
      for (int i = 0; i < kills; ++i) {
        // A request succeeds between two kills, so that none is killed more often than it runs again.
        for (const int64_t seen = succeeded; succeeded == seen;) std::this_thread::sleep_for(100us);
        state = state * 1664525 + 1013904223;
        std::this_thread::sleep_for(std::chrono::microseconds(state >> 20));
        if (const int64_t pid = pid_of(pipeline); pid > 0) ::kill(static_cast<pid_t>(pid), SIGKILL);
      }
      is_over = true;
    });
    int64_t number = 0, lost = 0;
    while (!is_over) {
      const Ticket ticket = pipeline.submit({Value(number)});
      ticket.wait();
      if (ticket.failure().has_value()) {
        EXPECT_EQ(ticket.failure()->kind, FailureKind::stage_lost) << message_of(*ticket.failure());
        ++lost;
      } else {
        EXPECT_EQ(number_of(ticket), number * 2);
        ++succeeded;
      }
      ++number;
    }
    killer.join();
    const PipelineMetrics metrics = pipeline.metrics();
    EXPECT_EQ(metrics.succeeded + metrics.failed, static_cast<uint64_t>(number));
    EXPECT_EQ(metrics.failed, static_cast<uint64_t>(lost));
    EXPECT_GT(metrics.stages[0].restarts, 0U);
    if (is_pure) {
      EXPECT_EQ(lost, 0);
    }
  }
  EXPECT_EQ(left_of(before), before);
}

// E3 for isolated stages: a stop at any time leaves nothing.
TEST(PipelineIsolation, StopsAtRandomTimesLeaveNothing) {
  const Belongings before = settled_belongings();
  const int rounds = kit::case_count(12, 1000);
  uint32_t state = 3;
  for (int i = 0; i < rounds; ++i) {
    Pipeline pipeline = pipeline_of({"double"});
    std::vector<Ticket> tickets;
    for (int64_t k = 0; k < 8; ++k) tickets.push_back(pipeline.submit({Value(k == 5 && i % 3 == 0 ? kKill : k)}));
    state = state * 1664525 + 1013904223;
    std::this_thread::sleep_for(std::chrono::microseconds(state >> 21));
    EXPECT_TRUE(pipeline.stop(after(5s)).empty());
    for (const Ticket& ticket : tickets) ASSERT_TRUE(ticket.is_done());
  }
  EXPECT_EQ(left_of(before), before);
}

}  // namespace
}  // namespace headrace::executors::pipeline::isolation
