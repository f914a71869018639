// footprint ARTIFACT: how much memory a program takes from its loading to its later runs, and whether that is little.
//
//   after loading        resident memory grew by at most 8 MB and the code
//   after the first run  by at most 8 MB, the code, and 1.3 times weights and arena
//   later runs           no heap allocation, not one
//
// Prints one JSON object. Exit codes: 0 within the limits, 3 the artifact cannot be used, 5 above a limit.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/exit_code.h"
#include "kit/count_allocations.h"
#include "kit/usage.h"
#include "load/artifact.h"
#include "tensor/ndarray.h"

namespace headrace {

namespace {

constexpr int64_t kSpareBytes = 8'000'000;
constexpr int kLaterRuns = 3;

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t weight_bytes_of(const artifact::Manifest& manifest) {
  int64_t end = 0;  // weights that share bytes count once
  for (const artifact::Weight& weight : manifest.weights) end = std::max(end, weight.offset + weight.nbytes);
  return end;
}

// Inputs and outputs are the caller's memory, which the program reads and writes in place.
std::vector<NDArray> make_tensors(const std::vector<artifact::TensorSpec>& specs) {
  std::vector<NDArray> tensors;
  for (const artifact::TensorSpec& spec : specs)
    tensors.push_back(NDArray::zeros(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype));
  return tensors;
}

void run_once(executors::Executor& executor, const std::vector<NDArray>& inputs, const std::vector<NDArray>& outputs) {
  for (size_t i = 0; i < inputs.size(); ++i) executors::throw_if_failed(executor.bind_input(i, inputs[i].tensor()));
  for (size_t i = 0; i < outputs.size(); ++i) executors::throw_if_failed(executor.bind_output(i, outputs[i].tensor()));
  executors::throw_if_failed(executor.run());
}

int measure(const std::string& path) {
  const int64_t before = resident_bytes();
  const auto artifact = load::open_artifact(path).value_or_throw();
  const auto executor = load::make_executor(artifact, artifact::kDefaultProgram, {.threads = 1});
  const int64_t load_growth = resident_bytes() - before;
  const int64_t before_ports = resident_bytes();
  const std::vector<NDArray> inputs = make_tensors(executor->inputs());
  const std::vector<NDArray> outputs = make_tensors(executor->outputs());
  const int64_t of_ports = resident_bytes() - before_ports;  // the caller's own
  run_once(*executor, inputs, outputs);
  const int64_t run_growth = resident_bytes() - before - of_ports;
  kit::AllocationCount later;
  {
    const kit::CountAllocations counter;
    for (int i = 0; i < kLaterRuns; ++i) run_once(*executor, inputs, outputs);
    later = counter.count();
  }
  const int64_t weights = weight_bytes_of(artifact->manifest());
  const int64_t arena = artifact::arena_bytes(artifact->manifest().programs[0].memory);
  const int64_t code = static_cast<int64_t>(std::filesystem::file_size(path)) - weights;
  const int64_t load_limit = kSpareBytes + code;
  const int64_t run_limit = load_limit + (weights + arena) / 10 * 13;
  fmt::print(
      "{{\"code\": {}, \"weights\": {}, \"arena\": {}, \"load_growth\": {}, \"load_limit\": {}, \"run_growth\": {}, "
      "\"run_limit\": {}, \"later_allocations\": {}}}\n",
      code, weights, arena, load_growth, load_limit, run_growth, run_limit, later.allocations);
  return load_growth <= load_limit && run_growth <= run_limit && later.allocations == 0 ? HR_OK : HR_MISMATCH;
}

}  // namespace

}  // namespace headrace

int main(int argc, char** argv) try {
  constexpr const char* kUsage =
      "usage: footprint ARTIFACT\n"
      "Prints as JSON how much memory the program takes from its loading to its later runs, beside what it may take.\n"
      "Exit codes: 0 within the limits, 3 the artifact cannot be used, 5 above a limit.\n";
  if (const auto code = headrace::kit::exit_for_usage(argc, argv, kUsage, 1, 1)) return *code;
  return headrace::measure(argv[1]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "footprint: %s\n", error.what());
  return headrace::exit_code_of(error);
}
