// The page of `headrace bench --html`: the times of all rounds in a plot, their percentiles, and the machine.
#pragma once

#include <string>

#include "object/array.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/output.h"

namespace headrace::tools {

// Throws UserError if `path` cannot be written. Call before models are timed.
void check_bench_page(const std::string& path);

// The runs of one model, or of the other runtime, with one number of threads.
struct BenchLane {
  std::string name;
  int threads = 1;
  std::vector<int> processors = {};
  double per_second = 0;
};

// Returns a lane of the page, with its times in the order of the rounds. `times` must not be empty.
Report lane_report(const BenchLane& lane, const Times& times);

// Writes the page. `report` has what is common to all lanes; the lanes and the machine are added.
void write_bench_page(const std::string& path, const std::string& title, Report report, const Array<Value>& lanes);

}  // namespace headrace::tools
