#include "tools/headrace/machine_report.h"

#include "cost/limits.h"
#include "cost/probes.h"
#include "driver/register_all.h"
#include "driver/target.h"
#include "tools/headrace/output.h"
#include "tools/headrace/processors.h"

namespace headrace::tools {

namespace {

constexpr double kProbeSeconds = 0.1;

// A number of the machine. The table has none for the hop.
struct MachineNumber {
  std::string what, unit;
  double probed = 0;
  std::optional<double> table = {};
};

std::vector<MachineNumber> numbers_of(const cost::Machine& table, int threads) {
  const cost::Caches caches = cost::read_caches();
  std::vector<MachineNumber> numbers;
  {
    const ProcessorScope one(1);
    const cost::Limits limits = cost::probe_limits(1, kProbeSeconds);
    const double peak = cost::peak_gigaops(table, DataType::float_(32));
    numbers.push_back({"multiply-adds of float32, 1 thread", "GFLOP/s", limits.gflops, peak});
    const double rates[] = {table.l2_gigabytes, table.l3_gigabytes, table.dram_gigabytes};
    for (size_t i = 0; i < limits.memory.size(); ++i)
      numbers.push_back({fmt::format("reads from {}, 1 thread", limits.memory[i].name), "GB/s",
                         limits.memory[i].gigabytes, rates[i]});
  }
  if (threads > 1) {
    const ProcessorScope all(threads);
    numbers.push_back({fmt::format("reads from DRAM, {} threads", threads), "GB/s",
                       cost::read_gigabytes(threads, 2 * caches.l3, kProbeSeconds), table.all_dram_gigabytes});
  }
  const auto kilobytes = [](int64_t bytes) { return static_cast<double>(bytes) / 1024; };
  numbers.push_back({"size of L2", "KiB", kilobytes(caches.l2), kilobytes(table.l2_bytes)});
  numbers.push_back({"size of L3", "KiB", kilobytes(caches.l3), kilobytes(table.l3_bytes)});
  if (const auto hop = cost::hop_nanoseconds(kProbeSeconds)) numbers.push_back({"hop from core to core", "ns", *hop});
  return numbers;
}

}  // namespace

int profile_machine(int threads, const Common& common) {
  driver::register_all();
  const codegen::NativeTarget target =
      driver::choose_target(codegen::NativeCompiler::load(), driver::llvm_target("", ""));
  const cost::Machine table = driver::machine_of(target);
  const std::vector<MachineNumber> numbers = numbers_of(table, threads);
  if (common.json) {
    Array<Value> rows;
    for (const MachineNumber& one : numbers)
      rows.push_back(Value(Report{{"what", Value(one.what)},
                                  {"unit", Value(one.unit)},
                                  {"probed", Value(one.probed)},
                                  {"table", one.table ? Value(*one.table) : Value()}}));
    std::cout << to_json({{"cpu", Value(target.cpu)},
                          {"family", Value(std::string(table.family))},
                          {"threads", Value(int64_t{threads})},
                          {"fma_instructions", Value(cost::fma_instructions())},
                          {"numbers", Value(rows)}});
    return HR_OK;
  }
  std::vector<std::vector<std::string>> rows{{"this machine", "probed", "table", "unit"}};
  for (const MachineNumber& one : numbers)
    rows.push_back(
        {one.what, fmt::format("{:.1f}", one.probed), one.table ? fmt::format("{:.1f}", *one.table) : "-", one.unit});
  std::cout << to_table(rows);
  print_out("{}: estimates count with the row {} of the table; multiply-adds by {}\n", target.cpu, table.family,
            cost::fma_instructions());
  return HR_OK;
}

}  // namespace headrace::tools
