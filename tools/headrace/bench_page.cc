#include "tools/headrace/bench_page.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "driver/output_file.h"
#include "object/shape_tuple.h"
#include "tools/headrace/shown_text.h"
#include "tools/html/page.h"

namespace headrace::tools {

namespace {

// Returns the name that Linux gives the first processor; None where it gives none, as on many machines with ARM.
Value processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return Value(shown(line.substr(colon + 2)));
  }
  return {};
}

Report machine_report() {
  utsname system{};
  const bool is_known = uname(&system) == 0;
  const std::string name =
      is_known ? fmt::format("{} {} {}", system.sysname, system.release, system.machine) : "an unknown system";
  return {{"processor", processor_name()},
          {"processors", Value(static_cast<int64_t>(sysconf(_SC_NPROCESSORS_ONLN)))},
          {"system", Value(shown(name))}};
}

}  // namespace

void check_bench_page(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  // A pipe or a device is opened when the page is written.
  if (!std::filesystem::is_fifo(status) && !std::filesystem::is_character_file(status)) driver::OutputFile trial(path);
}

Report lane_report(const BenchLane& lane, const Times& times) {
  Array<Value> seconds;
  for (const double time : times.in_order()) seconds.push_back(Value(time));
  return {{"name", Value(shown(lane.name))},
          {"threads", Value(int64_t{lane.threads})},
          {"processors", Value(Shape(lane.processors.begin(), lane.processors.end()))},
          {"best_seconds", Value(times.best())},
          {"median_seconds", Value(times.median())},
          {"p90_seconds", Value(times.percentile(0.9))},
          {"p99_seconds", Value(times.percentile(0.99))},
          {"longest_seconds", Value(times.percentile(1))},
          {"runs_per_second", Value(lane.per_second)},
          {"seconds", Value(seconds)}};
}

void write_bench_page(const std::string& path, const std::string& title, Report report, const Array<Value>& lanes) {
  report.set("machine", Value(machine_report()));
  report.set("lanes", Value(lanes));
  driver::write_text(path, html::make_page(html::bench_page(), shown(title), to_compact_json(report)));
}

}  // namespace headrace::tools
