#include "devices/simulated_device.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <ranges>
#include <span>

#include "base/error.h"

namespace headrace::devices {
namespace {

constexpr std::string_view kPrefix = "sim";
constexpr const char* kForm = "it is written sim:0(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)";

struct Unit {
  std::string_view name;
  int64_t factor;
};

// Largest first. The text of a number has the first unit that divides it.
constexpr std::array<Unit, 4> kMemoryUnits = {{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}};
constexpr std::array<Unit, 6> kOtherMemoryUnits = {
    {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"GB", 1'000'000'000}, {"MB", 1'000'000}, {"KB", 1'000}}};
constexpr std::array<Unit, 4> kLinkUnits = {
    {{"GB/s", 1'000'000'000}, {"MB/s", 1'000'000}, {"KB/s", 1'000}, {"B/s", 1}}};
constexpr std::array<Unit, 4> kTimeUnits = {{{"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1}}};

std::string unit_text(int64_t value, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    if (value >= unit.factor && value % unit.factor == 0) return fmt::format("{}{}", value / unit.factor, unit.name);
  }
  return fmt::format("{}{}", value, units.back().name);
}

template <typename... Args>
[[noreturn]] void refuse(std::string_view text, fmt::format_string<Args...> format, Args&&... args) {
  throw_user_error("'{}' is not a simulated device: {}; {}", text, fmt::format(format, std::forward<Args>(args)...),
                   kForm);
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// Reads one description of a device.
class Reader {
 public:
  Reader(std::string_view text, int32_t number) : text_(text) { device_.number = number; }

  SimulatedDevice read() {
    std::string_view rest = trimmed(text_);
    if (!rest.starts_with(kPrefix)) refuse(text_, "its name is not sim");
    rest.remove_prefix(kPrefix.size());
    const size_t bracket = std::min(rest.find('('), rest.size());
    read_number(trimmed(rest.substr(0, bracket)));
    rest.remove_prefix(bracket);
    if (rest.empty()) return device_;
    if (!rest.ends_with(')')) refuse(text_, "there is no ')' at its end");
    read_fields(rest.substr(1, rest.size() - 2));
    return device_;
  }

 private:
  void read_number(std::string_view text) {
    if (text.empty()) return;
    const std::string_view digits = text.substr(1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), device_.number);
    if (text[0] != ':' || error != std::errc() || end != digits.data() + digits.size() || device_.number < 0)
      refuse(text_, "'{}' is not a number of a device", text);
  }

  void read_fields(std::string_view text) {
    while (!trimmed(text).empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      const std::string_view field = trimmed(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
      const size_t equals = std::min(field.find('='), field.size());
      read_field(trimmed(field.substr(0, equals)),
                 equals < field.size() ? trimmed(field.substr(equals + 1)) : std::string_view());
    }
  }

  void read_field(std::string_view key, std::string_view value) {
    if (key == "speed") {
      const auto [number, unit] = split(key, value);
      if (!unit.empty() || !(number >= kLeastSpeed && number <= kMostSpeed))
        refuse(text_, "its speed is '{}'; it must lie between {} and {}", value, kLeastSpeed, kMostSpeed);
      device_.speed = number;
    } else if (key == "memory") {
      device_.memory_bytes = read_units(key, value, kMemoryUnits, kOtherMemoryUnits, 1);
    } else if (key == "link") {
      device_.bytes_per_second = read_units(key, value, kLinkUnits, {}, 1);
    } else if (key == "latency") {
      device_.latency_ns = read_units(key, value, kTimeUnits, {}, 0);
    } else {
      refuse(text_, "'{}' is not one of its numbers, which are speed, memory, link and latency", key);
    }
  }

  std::pair<double, std::string_view> split(std::string_view key, std::string_view value) const {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || !std::isfinite(number))
      refuse(text_, "its {} is '{}', which is not a number", key, value);
    return {number, trimmed(value.substr(static_cast<size_t>(end - value.data())))};
  }

  int64_t read_units(std::string_view key, std::string_view value, std::span<const Unit> units,
                     std::span<const Unit> others, int64_t least) const {
    const auto [number, name] = split(key, value);
    for (const std::span<const Unit> list : {units, others}) {
      for (const Unit& unit : list) {
        if (unit.name != name) continue;
        const double scaled = number * static_cast<double>(unit.factor);
        if (!(scaled >= static_cast<double>(least) && scaled <= 1e18))
          refuse(text_, "its {0} is '{1}'; it must lie between {2}{3} and 1e18{3}", key, value, least,
                 units.back().name);
        return std::llround(scaled);
      }
    }
    const std::string known = fmt::format("{}", fmt::join(units | std::views::transform(&Unit::name), ", "));
    if (name.empty()) refuse(text_, "its {} is '{}', which has no unit; there is {}", key, value, known);
    refuse(text_, "its {} is '{}', which has the unknown unit '{}'; there is {}", key, value, name, known);
  }

  std::string_view text_;
  SimulatedDevice device_;
};

// Returns the brackets with the numbers.
std::string numbers_of(const SimulatedDevice& device) {
  std::string text = fmt::format("(speed={}", device.speed);
  if (device.memory_bytes > 0) text += ", memory=" + unit_text(device.memory_bytes, kMemoryUnits);
  if (device.bytes_per_second > 0) text += ", link=" + unit_text(device.bytes_per_second, kLinkUnits);
  if (device.latency_ns > 0) text += ", latency=" + unit_text(device.latency_ns, kTimeUnits);
  return text + ")";
}

}  // namespace

std::string name_of(const SimulatedDevice& device) { return fmt::format("{}:{}", kPrefix, device.number); }

std::string to_string(const SimulatedDevice& device) { return name_of(device) + numbers_of(device); }

SimulatedDevice parse_simulated_device(std::string_view text, int32_t number) { return Reader(text, number).read(); }

artifact::Location plan_location(const SimulatedDevice& device) {
  return {.device = {kDLExtDev, device.number}, .memory_kind = std::string(kPrefix) + numbers_of(device)};
}

std::optional<SimulatedDevice> simulated_device_at(const artifact::Location& location) {
  if (location.device.type != kDLExtDev || !location.memory_kind.starts_with("sim(")) return {};
  return parse_simulated_device(location.memory_kind, location.device.id);
}

std::string place_text(const artifact::Location& location) {
  const std::optional<SimulatedDevice> device = simulated_device_at(location);
  return device ? to_string(*device) : artifact::to_string(location);
}

std::string memory_text(int64_t nbytes) { return unit_text(nbytes, kMemoryUnits); }

int64_t tensor_memory(int64_t nbytes) { return (std::max<int64_t>(nbytes, 1) + 63) / 64 * 64; }

int64_t transfer_ns(const SimulatedDevice& device, int64_t nbytes) {
  if (device.bytes_per_second == 0) return device.latency_ns;
  const double time = static_cast<double>(nbytes) * 1e9 / static_cast<double>(device.bytes_per_second);
  return device.latency_ns + static_cast<int64_t>(std::min(std::ceil(time), 1e18));
}

}  // namespace headrace::devices
