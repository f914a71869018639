// The text of simulated devices.
#include "devices/simulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace::devices {
namespace {

using ::testing::HasSubstr;

TEST(SimulatedDevices, TheTextIsReadAndWritten) {
  const SimulatedDevice device = parse_simulated_device("sim:3(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)");
  EXPECT_EQ(device, (SimulatedDevice{.number = 3,
                                     .speed = 0.5,
                                     .memory_bytes = 67'108'864,
                                     .bytes_per_second = 2'000'000'000,
                                     .latency_ns = 20'000}));
  EXPECT_EQ(to_string(device), "sim:3(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)");
  EXPECT_EQ(to_string(parse_simulated_device("sim")), "sim:0(speed=1)");
  EXPECT_EQ(to_string(parse_simulated_device(" sim ( latency = 1.5ms,link=3B/s ,memory=1000B)", 7)),
            "sim:7(speed=1, memory=1000B, link=3B/s, latency=1500us)");
  EXPECT_EQ(parse_simulated_device("sim(memory=2G)").memory_bytes, int64_t{2} << 30);
  EXPECT_EQ(parse_simulated_device("sim(memory=2GB)").memory_bytes, 2'000'000'000);
}

TEST(SimulatedDevices, APlanKeepsTheNumbers) {
  const SimulatedDevice device = parse_simulated_device("sim:2(speed=0.3, link=7KB/s)");
  const artifact::Location location = plan_location(device);
  EXPECT_EQ(to_string(location), "ext_dev:2/sim(speed=0.3, link=7KB/s)");
  EXPECT_EQ(simulated_device_at(*artifact::parse_location(to_string(location))), device);
  EXPECT_EQ(place_text(location), to_string(device));
  EXPECT_EQ(place_text({}), "cpu:0");
  EXPECT_EQ(simulated_device_at(*artifact::parse_location("cuda:0")), std::nullopt);
  EXPECT_EQ(simulated_device_at(*artifact::parse_location("ext_dev:0")), std::nullopt);
}

TEST(SimulatedDevices, WrongTextsAreRefused) {
  const auto refused = [](const char* text) { return kit::user_error_of([&] { parse_simulated_device(text); }); };
  EXPECT_THAT(refused("gpu:0"),
              HasSubstr("'gpu:0' is not a simulated device: its name is not sim; it is written sim:0("));
  EXPECT_THAT(refused("sim:x"), HasSubstr("':x' is not a number of a device"));
  EXPECT_THAT(refused("sim:-1"), HasSubstr("':-1' is not a number of a device"));
  EXPECT_THAT(refused("simple"), HasSubstr("'ple' is not a number of a device"));
  EXPECT_THAT(refused("sim(speed=1"), HasSubstr("there is no ')' at its end"));
  EXPECT_THAT(refused("sim(colour=1)"),
              HasSubstr("'colour' is not one of its numbers, which are speed, memory, link and latency"));
  EXPECT_THAT(refused("sim(speed=0)"), HasSubstr("its speed is '0'; it must lie between 1e-06 and 1000000"));
  EXPECT_THAT(refused("sim(speed=fast)"), HasSubstr("its speed is 'fast', which is not a number"));
  EXPECT_THAT(refused("sim(speed=nan)"), HasSubstr("which is not a number"));
  EXPECT_THAT(refused("sim(memory=64)"), HasSubstr("its memory is '64', which has no unit"));
  EXPECT_THAT(refused("sim(memory=0B)"), HasSubstr("its memory is '0B'; it must lie between 1B and 1e18B"));
  EXPECT_THAT(refused("sim(memory=64XB)"),
              HasSubstr("its memory is '64XB', which has the unknown unit 'XB'; there is GiB, MiB, KiB, B"));
  EXPECT_THAT(refused("sim(link=1GB)"),
              HasSubstr("its link is '1GB', which has the unknown unit 'GB'; there is GB/s, "));
  EXPECT_THAT(refused("sim(latency=-1us)"), HasSubstr("its latency is '-1us'; it must lie between 0ns and 1e18ns"));
}

TEST(SimulatedDevices, ATransferTakesItsLatencyAndItsBytes) {
  EXPECT_EQ(transfer_ns(parse_simulated_device("sim(link=1GB/s, latency=5us)"), 1000), 6000);
  EXPECT_EQ(transfer_ns(parse_simulated_device("sim(latency=5us)"), 1000), 5000);
  EXPECT_EQ(transfer_ns(parse_simulated_device("sim(link=3B/s)"), 1), 333'333'334);
  constexpr int64_t kLongest = 1'000'000'000'000'000'000;
  EXPECT_EQ(transfer_ns(parse_simulated_device("sim(link=1B/s, latency=7ns)"), int64_t{1} << 40), kLongest + 7);
}

}  // namespace
}  // namespace headrace::devices
