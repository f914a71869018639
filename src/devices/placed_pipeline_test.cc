// Pipelines over simulated devices: their values, copies, memory and times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "devices/place_stages.h"
#include "executors/pipeline/plan_spec.h"
#include "executors/pipeline/test_stages.h"
#include "kit/errors.h"

namespace headrace::devices {
namespace {

using namespace executors::pipeline;
using namespace executors::pipeline::testing;
using ::testing::HasSubstr;

constexpr int64_t kWidth = 1024;  // elements of each tensor: 4 KiB

// Adds a number to each element, in place of its output, and notes where its tensors lie.
class Adder final : public StageCode {
 public:
  explicit Adder(float amount, std::chrono::microseconds time = {}, int64_t memory = 0)
      : amount_(amount), time_(time), memory_(memory) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  void add_memory(executors::MemoryUse& memory) const override {
    memory.working_bytes += memory_;
    if (!weight.empty()) memory.add_weight(weight);
  }
  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    const NDArray x = inputs[0]->as<NDArray>(), y = outputs[0].as<NDArray>();
    EXPECT_EQ(x.device(), cpu());
    read_at = x.data<const float>();
    written_at = y.data<const float>();
    for (int64_t i = 0; i < kWidth; ++i) y.data<float>()[i] = x.data<const float>()[i] + amount_;
    std::this_thread::sleep_for(time_);
    return {};
  }

  std::atomic<const float*> read_at = nullptr, written_at = nullptr;
  std::span<const std::byte> weight = {};

 private:
  float amount_;
  std::chrono::microseconds time_;
  int64_t memory_;
  std::vector<Port> inputs_{float_port("x", {kWidth})}, outputs_{float_port("y", {kWidth})};
};

// A chain of adders, each on the device of its text; "" is the CPU.
struct PlacedChain {
  artifact::PipelinePlan plan{};
  PipelineSpec spec{};
  PlacedStages placed{};
  std::vector<std::shared_ptr<Adder>> codes{};

  void add(const std::string& device, std::shared_ptr<Adder> code) {
    const size_t count = plan.stages.size();
    const std::string name = fmt::format("s{}", count);
    plan.groups.push_back({.name = name});
    if (!device.empty()) plan.groups.back().location = plan_location(parse_simulated_device(device));
    plan.stages.push_back({.name = name,
                           .function = name,
                           .inputs = code->inputs(),
                           .outputs = code->outputs(),
                           .sources = {count == 0 ? from_input(0) : from_stage(count - 1)},
                           .group = static_cast<int32_t>(count)});
    codes.push_back(std::move(code));
  }
  void place() {
    plan.inputs = {float_port("x", {kWidth})};
    plan.outputs = {{.name = "y", .source = from_stage(plan.stages.size() - 1)}};
    size_t next = 0;
    spec = spec_of_plan(plan, [&](const artifact::PipelineStage&) { return codes[next++]; });
    placed = place_stages(plan, spec);
  }
};

NDArray ramp() {
  const NDArray x = NDArray::empty({kWidth}, DataType::parse("float32"));
  std::iota(x.data<float>(), x.data<float>() + kWidth, 0.0F);
  return x;
}

void expect_ramp_from(const NDArray& y, float first) {
  ASSERT_EQ(y.device(), cpu());
  for (int64_t i = 0; i < kWidth; ++i) ASSERT_EQ(y.data<const float>()[i], first + static_cast<float>(i));
}

std::vector<std::string> names_of(const PipelineSpec& spec) {
  std::vector<std::string> names;
  for (const StageSpec& stage : spec.stages) names.push_back(stage.name);
  return names;
}

TEST(PlacedPipelines, ValuesPassBetweenTheHostAndTwoDevices) {
  PlacedChain chain;
  chain.add("", std::make_shared<Adder>(1));
  chain.add("sim:0", std::make_shared<Adder>(10));
  chain.add("", std::make_shared<Adder>(100));
  chain.add("sim:1(speed=0.5)", std::make_shared<Adder>(1000));
  chain.place();
  EXPECT_EQ(names_of(chain.spec), (std::vector<std::string>{"s0", "s1", "s2", "s3", "s0.y to sim:0", "s1.y from sim:0",
                                                            "s2.y to sim:1", "s3.y from sim:1"}));
  Pipeline pipeline(chain.spec);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 10; ++i) tickets.push_back(pipeline.submit({Value(ramp())}));
  for (const Ticket& ticket : tickets) expect_ramp_from(ticket.results().at(0).as<NDArray>(), 1111);
  for (const auto& device : chain.placed.devices) {
    EXPECT_EQ(device->counts().transfers_in, 10U);
    EXPECT_EQ(device->counts().transfers_out, 10U);
  }
  const PipelineMetrics metrics = pipeline.metrics();
  ASSERT_EQ(metrics.stages.size(), 8U);
  for (const StageMetrics& stage : metrics.stages) EXPECT_EQ(stage.items, 10U) << stage.name;
}

TEST(PlacedPipelines, ATensorBetweenTwoDevicesPassesThroughTheHost) {
  PlacedChain chain;
  chain.add("sim:0", std::make_shared<Adder>(1));
  chain.add("sim:1", std::make_shared<Adder>(10));
  chain.place();
  EXPECT_EQ(names_of(chain.spec), (std::vector<std::string>{"s0", "s1", "x to sim:0", "s0.y from sim:0",
                                                            "s0.y to sim:1", "s1.y from sim:1"}));
  EXPECT_EQ(chain.spec.groups.size(), 6U);  // two of the stages, and one for each direction of two links
  Pipeline pipeline(chain.spec);
  expect_ramp_from(pipeline.submit({Value(ramp())}).results().at(0).as<NDArray>(), 11);
}

TEST(PlacedPipelines, StagesOfOneDeviceHandOverInPlace) {
  PlacedChain chain;
  for (float amount : {1.0F, 10.0F, 100.0F}) chain.add("sim:0", std::make_shared<Adder>(amount));
  chain.place();
  Pipeline pipeline(chain.spec);
  for (int i = 0; i < 5; ++i) {
    expect_ramp_from(pipeline.submit({Value(ramp())}).results().at(0).as<NDArray>(), 111);
    for (size_t stage = 1; stage < 3; ++stage)
      EXPECT_EQ(chain.codes[stage]->read_at.load(), chain.codes[stage - 1]->written_at.load());
  }
  ASSERT_EQ(chain.placed.devices.size(), 1U);
  EXPECT_EQ(chain.placed.devices[0]->counts().transfers_in, 5U);
  EXPECT_EQ(chain.placed.devices[0]->counts().transfers_out, 5U);
}

TEST(PlacedPipelines, ATensorIsCopiedOnceForAllItsReaders) {
  PlacedChain chain;
  chain.add("", std::make_shared<Adder>(1));
  chain.add("sim:0", std::make_shared<Adder>(10));
  chain.add("sim:0", std::make_shared<Adder>(100));
  chain.plan.stages[2].sources = {from_stage(0)};
  chain.place();
  EXPECT_EQ(chain.spec.stages[1].inputs[0].index, chain.spec.stages[2].inputs[0].index);
}

// Without the transfers, the graph is refused: no stage reads other memory in place.
TEST(PlacedPipelines, OtherMemoryIsNotReadInPlace) {
  const auto device = std::make_shared<OpenDevice>(parse_simulated_device("sim:4"));
  Port far = float_port("y", {2});
  far.spec.location = device->location();
  const auto code = make_function_stage(make_packed([](NDArray x) { return x; }), {float_port("x", {2})}, {far});
  PipelineSpec spec{.inputs = {float_port("x", {2})}, .groups = {{}, {}}};
  spec.stages = {
      stage_of("a", code, {from_input(0)}, 0),
      stage_of("b", make_function_stage(make_packed([](NDArray x) { return x; }), {any_port("x")}, {any_port("y")}),
               {from_stage(0)}, 1)};
  spec.outputs = {{.name = "z", .source = from_stage(1)}};
  EXPECT_THAT(kit::user_error_of([&] { check_spec(spec); }),
              ::testing::MatchesRegex("output 'y' of stage 'a' is float32 \\(2\\) on ext_dev:[0-9]+/sim:4, and input "
                                      "'x' of stage 'b' is any value: both ends of a connection have the same type and "
                                      "memory.*"));
}

TEST(PlacedPipelines, AStageReadsTheMemoryOfItsDeviceOnly) {
  PlacedChain chain;
  chain.add("sim:0", std::make_shared<Adder>(1));
  chain.place();
  StageCode& code = *chain.spec.stages[0].replicas[0];
  const Value near{ramp()};
  const Value* inputs[] = {&near};
  Value outputs[] = {
      Value(NDArray::empty({kWidth}, DataType::parse("float32"), chain.placed.devices[0]->location().device))};
  const Ref<ErrorObj> error = code.run(inputs, outputs);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message, "'x' is not in the memory of sim:0, which is all that its stages read and write");
}

TEST(PlacedPipelines, MemoryHasItsLimit) {
  // The slots of an input and an output take two tensors of 4 KiB each.
  const auto refused = [](const char* device, int64_t constants) {
    PlacedChain chain;
    chain.add(device, std::make_shared<Adder>(1, std::chrono::microseconds(0), constants));
    return kit::user_error_of([&] {
      chain.place();
      Pipeline pipeline(chain.spec);
    });
  };
  EXPECT_EQ(refused("sim:0(memory=16KiB)", 0), "");
  EXPECT_EQ(refused("sim:0(memory=12KiB)", 0), "sim:0 has 12KiB of memory, 12KiB are in use, and 4KiB more do not fit");
  EXPECT_THAT(refused("sim:0(memory=1MiB)", 2 << 20),
              HasSubstr("stage 's0': sim:0 has 1MiB of memory, 0B are in use, and 2MiB more do not fit"));
}

TEST(PlacedPipelines, StagesOfADeviceShareTheMemoryOfTheirWeights) {
  const std::vector<std::byte> shared(1000), other(64);
  PlacedChain chain;
  for (const char* device : {"sim:0", "sim:0", "sim:0", "sim:1"}) {
    chain.add(device, std::make_shared<Adder>(1, std::chrono::microseconds(0), 10));
    chain.codes.back()->weight = shared;
  }
  chain.codes[0]->weight = std::span(shared).first(900);
  chain.codes[2]->weight = other;
  chain.place();
  ASSERT_EQ(chain.placed.devices.size(), 2U);
  EXPECT_EQ(chain.placed.devices[0]->bytes_in_use(), 3 * 10 + 1000 + 64);
  EXPECT_EQ(chain.placed.devices[1]->bytes_in_use(), 10 + 1000);
}

TEST(PlacedPipelines, ATensorTakesWholeLinesOfMemory) {
  OpenDevice device(parse_simulated_device("sim:0"));
  for (const int64_t nbytes : {1, 64, 65}) {
    const NDArray tensor = NDArray::empty({nbytes}, DataType::parse("int8"), device.location().device);
    EXPECT_EQ(device.bytes_in_use(), nbytes == 65 ? 128 : 64);
    EXPECT_EQ(tensor_memory(nbytes), device.bytes_in_use());
  }
}

TEST(PlacedPipelines, MemoryIsGivenBack) {
  std::shared_ptr<OpenDevice> device;
  {
    PlacedChain chain;
    chain.add("sim:0(memory=16KiB)", std::make_shared<Adder>(1));
    chain.place();
    device = chain.placed.devices[0];
    Pipeline pipeline(chain.spec);
    EXPECT_EQ(device->bytes_in_use(), 16 << 10);
  }
  EXPECT_EQ(device->bytes_in_use(), 0);
  // A tensor keeps its memory when nobody has the device any more.
  const NDArray last = NDArray::empty({4}, DataType::parse("float32"), device->location().device);
  const artifact::Location location = device->location();
  device.reset();
  EXPECT_EQ(last.copy().shape(), (Shape{4}));
  EXPECT_TRUE(device_api(location.device)->exists(location.device));
}

TEST(PlacedPipelines, WrongPlacesAreRefused) {
  const auto refused = [](const std::function<void(artifact::PipelinePlan&)>& change) {
    PlacedChain chain;
    chain.add("sim:0", std::make_shared<Adder>(1));
    chain.add("", std::make_shared<Adder>(1));
    chain.codes.push_back(chain.codes[1]);  // for a replica
    change(chain.plan);
    return kit::user_error_of([&] { chain.place(); });
  };
  EXPECT_EQ(
      refused([](artifact::PipelinePlan& plan) { plan.groups[1].location = *artifact::parse_location("cuda:1"); }),
      "group 's1' is on cuda:1; stages run on cpu:0 and on simulated devices");
  EXPECT_THAT(refused([](artifact::PipelinePlan& plan) {
                plan.groups[1].location = plan_location(parse_simulated_device("sim:0(speed=2)"));
              }),
              HasSubstr("sim:0(speed=1) and sim:0(speed=2) are one device with two sets of numbers"));
  EXPECT_THAT(refused([](artifact::PipelinePlan& plan) {
                plan.groups[1].location = plan_location(parse_simulated_device("sim:1"));
                plan.stages[1].replicas = 2;
              }),
              HasSubstr("stage 's1' has 2 replicas on sim:1, which runs one call at a time"));
  PipelineSpec spec = chain_of({adder(1)});
  artifact::PipelinePlan plan;
  plan.groups = {{.name = "g", .location = plan_location(parse_simulated_device("sim:0"))}};
  plan.stages.resize(1);
  EXPECT_THAT(kit::user_error_of([&] { place_stages(plan, spec); }),
              HasSubstr("stage 's0': input 'x0' takes any value, and sim:0 holds tensors of known types"));
}

// Tests that request `request` fails while its transfer runs, and that the pipeline goes on with all its places.
TEST(PlacedPipelines, ARequestThatFailsDuringATransferGivesItsPlacesBack) {
  PlacedChain chain;
  chain.add("sim:0(latency=20ms)", std::make_shared<Adder>(1));
  chain.place();
  Pipeline pipeline(chain.spec, {.max_inflight = 2});
  for (int round = 0; round < 4; ++round) {
    const Ticket late = pipeline.submit({Value(ramp())}, {.deadline = after(5ms)});
    const Ticket cancelled = pipeline.submit({Value(ramp())});
    ASSERT_TRUE(late.wait());
    EXPECT_EQ(late.failure()->kind, FailureKind::deadline);
    cancelled.cancel();
  }
  expect_ramp_from(pipeline.submit({Value(ramp())}).results().at(0).as<NDArray>(), 1);
  EXPECT_TRUE(pipeline.drain(after(10s)));
  EXPECT_EQ(pipeline.metrics().in_flight, 0U);
}

// Parameters go over the link once for each of their values.
TEST(PlacedPipelines, AParameterIsCopiedOnce) {
  PlacedChain chain;
  chain.add("sim:0", std::make_shared<Adder>(1));
  chain.plan.stages[0].sources = {from_param(0)};
  chain.plan.params = {{.group = "g", .port = float_port("w", {kWidth})}};
  chain.plan.inputs = {};
  chain.place();
  chain.spec.inputs.clear();
  Pipeline pipeline(chain.spec);
  const auto copies = [&] { return chain.placed.devices[0]->counts().transfers_in; };
  pipeline.set_params("g", {{"w", ramp()}});
  for (int i = 0; i < 5; ++i) expect_ramp_from(pipeline.submit({}).results().at(0).as<NDArray>(), 1);
  EXPECT_EQ(copies(), 1U);
  const NDArray other = ramp();
  for (int64_t i = 0; i < kWidth; ++i) other.data<float>()[i] += 5;
  pipeline.set_params("g", {{"w", other}});
  for (int i = 0; i < 5; ++i) expect_ramp_from(pipeline.submit({}).results().at(0).as<NDArray>(), 6);
  EXPECT_EQ(copies(), 2U);
}

// Returns one stage on a device, whose input is a parameter.
PlacedChain chain_of_parameter(const char* device, const Port& port) {
  PlacedChain chain;
  chain.add(device, std::make_shared<Adder>(1));
  chain.plan.stages[0].sources = {from_param(0)};
  chain.plan.params = {{.group = "g", .port = port}};
  chain.place();
  chain.spec.inputs.clear();
  return chain;
}

// The slots of the output and one value of the parameter fill the memory.
TEST(PlacedPipelines, ANewValueOfAParameterTakesTheMemoryOfTheOldOne) {
  const PlacedChain chain = chain_of_parameter("sim:0(memory=12KiB)", float_port("w", {kWidth}));
  Pipeline pipeline(chain.spec);
  for (int i = 0; i < 2; ++i) {
    pipeline.set_params("g", {{"w", ramp()}});
    expect_ramp_from(pipeline.submit({}).results().at(0).as<NDArray>(), 1);
  }
  EXPECT_EQ(chain.placed.devices[0]->counts().transfers_in, 2U);
}

TEST(PlacedPipelines, AParameterOfAnyValueHasTheTypeOfItsReader) {
  const PlacedChain chain = chain_of_parameter("sim:0", any_port("w"));
  Pipeline pipeline(chain.spec);
  pipeline.set_params("g", {{"w", NDArray::zeros({2 * kWidth}, DataType::parse("int16"))}});
  const Ticket wrong = pipeline.submit({});
  ASSERT_TRUE(wrong.wait());
  EXPECT_THAT(message_of(*wrong.failure()), HasSubstr("'w' has dtype int16, the program takes float32"));
  pipeline.set_params("g", {{"w", ramp()}});
  expect_ramp_from(pipeline.submit({}).results().at(0).as<NDArray>(), 1);
}

// Tests that stop() ends a call that waits for the time of its device, and fails the request.
void expect_stops(const char* device) {
  PlacedChain chain;
  chain.add(device, std::make_shared<Adder>(1, std::chrono::milliseconds(10)));
  chain.place();
  Pipeline pipeline(chain.spec);
  const Ticket ticket = pipeline.submit({Value(ramp())});
  const Clock::time_point begin = Clock::now();
  const OpenDevice& opened = *chain.placed.devices[0];
  while (opened.counts().transfers_in == 0 || (opened.device().speed < 1 && chain.codes[0]->written_at == nullptr))
    std::this_thread::yield();
  EXPECT_EQ(pipeline.stop(after(50ms)), std::vector<std::string>{}) << device;
  EXPECT_LT(Clock::now() - begin, 30s) << device;
  ASSERT_TRUE(ticket.wait());
  EXPECT_TRUE(ticket.failure().has_value()) << device;
}

TEST(PlacedPipelines, StoppingEndsTheWaitsOfADevice) {
  expect_stops("sim:0(speed=1e-6)");       // computes for hours
  expect_stops("sim:0(latency=100000s)");  // so long does a transfer take
}

TEST(PlacedPipelines, AnInterruptedCallFails) {
  PlacedChain chain;
  chain.add("sim:0(speed=1e-6)", std::make_shared<Adder>(1, std::chrono::milliseconds(10)));
  chain.place();
  EXPECT_FALSE(interrupt_device(cpu()));
  Pipeline pipeline(chain.spec);
  const Ticket ticket = pipeline.submit({Value(ramp())});
  while (!ticket.wait(after(10ms))) EXPECT_TRUE(interrupt_device(chain.placed.devices[0]->location().device));
  EXPECT_THAT(message_of(*ticket.failure()), HasSubstr("sim:0 was interrupted before its time for this was over"));
}

// Returns the seconds that the requests take, whose results are a ramp from `first` on.
double seconds_of(Pipeline& pipeline, int requests, float first) {
  const Clock::time_point begin = Clock::now();
  std::vector<Ticket> tickets;
  for (int i = 0; i < requests; ++i) tickets.push_back(pipeline.submit({Value(ramp())}));
  for (const Ticket& ticket : tickets) expect_ramp_from(ticket.results().at(0).as<NDArray>(), first);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The link takes 2 ms + 4096 bytes at 2.048 MB/s = 4 ms for each request, in each direction; the stages take less.
TEST(PlacedPipelines, ASlowLinkBoundsTheThroughput) {
  PlacedChain chain;
  chain.add("", std::make_shared<Adder>(1, std::chrono::microseconds(1000)));
  chain.add("sim:0(speed=0.5, link=2048KB/s, latency=2ms)",
            std::make_shared<Adder>(10, std::chrono::microseconds(1000)));
  chain.place();
  Pipeline pipeline(chain.spec);
  constexpr int kRequests = 50;
  const double seconds = seconds_of(pipeline, kRequests, 11);
  EXPECT_GE(seconds, kRequests * 4e-3);
  // No transfer takes less than it should, and on a busy machine some end later. So the throughput is that of the link
  // if the link works nearly all the time; it idles while the pipeline fills and empties.
  const PipelineMetrics metrics = pipeline.metrics();
  double busy = 0;
  for (const StageMetrics& stage : metrics.stages)
    busy += stage.name == "s0.y to sim:0" ? static_cast<double>(stage.busy_ns) * 1e-9 : 0;
  EXPECT_GE(busy, 0.7 * seconds);
}

TEST(PlacedPipelines, ADeviceTakesTheTimeOfItsSpeed) {
  PlacedChain chain;
  chain.add("sim:0(speed=0.25)", std::make_shared<Adder>(1, std::chrono::microseconds(2000)));
  chain.add("sim:0(speed=0.25)", std::make_shared<Adder>(1, std::chrono::microseconds(1000)));
  chain.place();
  Pipeline pipeline(chain.spec);
  // Both stages are in groups of their own, and take turns on the device: 4 * (2 ms + 1 ms) for each request.
  constexpr int kRequests = 10;
  EXPECT_GE(seconds_of(pipeline, kRequests, 2), kRequests * 12e-3);
}

}  // namespace
}  // namespace headrace::devices
