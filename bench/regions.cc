#include "bench/regions.h"

#include <algorithm>
#include <ctime>

#include "bench/count_allocations.h"
#include "bench/stacked_blocks.h"
#include "object/array.h"
#include "ops/all_ops.h"
#include "partition/annotate.h"
#include "partition/extract.h"
#include "partition/merge.h"
#include "relay/infer/infer_type.h"

namespace headrace::bench {

namespace {

using tools::Report;

constexpr const char* kRegionCompiler = "bench_regions";

bool is_for_region_compiler(const relay::CallNode& call) {
  return call.as_op()->name == "exp" || call.as_op()->name == "add";
}

void add_region_compiler() {
  for (const char* op : {"exp", "add"})
    partition::set_target_check(get_op(op), kRegionCompiler, is_for_region_compiler);
}

// Stacks blocks; each fourth op is one that the compiler does not support.
IRModule make_blocks(const Block& block, int64_t ops) {
  const relay::Var x = relay::make_var("x", make_tensor_type({2}, DataType::float_(32)));
  const auto size = static_cast<int64_t>(block.size());
  std::vector<Expr> nodes;
  for (int64_t i = 0; i < std::max<int64_t>(ops / size, 1) * size; ++i) {
    const int64_t begin = i - i % size;
    Array<Expr> args;
    for (const int32_t input : block[static_cast<size_t>(i - begin)])
      args.push_back(begin + input < 0 ? Expr(x) : nodes[static_cast<size_t>(begin + input)]);
    static constexpr const char* kOps[2][2] = {{"exp", "nn.relu"}, {"add", "subtract"}};
    nodes.push_back(relay::make_call(kOps[args.size() - 1][i % 4 == 0 ? 1 : 0], args));
  }
  return make_module(relay::make_function({x}, nodes.back()));
}

double processor_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// The times of the rounds over one program.
struct RegionTimes {
  std::vector<double> infer, annotate, merge, partition, all;
  int64_t bytes = 0, regions = 0;
};

void run_round(const IRModule& module, RegionTimes& times) {
  IRModule typed, annotated, merged;
  partition::Partitioned partitioned;
  times.infer.push_back(processor_seconds_of([&] { typed = relay::infer_type(module); }));
  const int64_t bytes = allocated_bytes();
  times.annotate.push_back(
      processor_seconds_of([&] { annotated = partition::annotate_target(typed, {.targets = {kRegionCompiler}}); }));
  times.merge.push_back(processor_seconds_of([&] { merged = partition::merge_compiler_regions(annotated); }));
  times.partition.push_back(processor_seconds_of([&] { partitioned = partition::partition_graph(merged); }));
  times.bytes = allocated_bytes() - bytes;
  times.all.push_back(times.annotate.back() + times.merge.back() + times.partition.back());
  times.regions = static_cast<int64_t>(partitioned.regions.size());
}

double best_time(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

double median_time(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

Report region_row(const char* name, const Block& block, int64_t ops, int rounds) {
  RegionTimes times;
  for (int round = 0; round < rounds; ++round) run_round(make_blocks(block, ops), times);
  return {{"name", Value(name)},
          {"ops", Value(ops)},
          {"regions", Value(times.regions)},
          {"infer_seconds", Value(best_time(times.infer))},
          {"annotate_seconds", Value(best_time(times.annotate))},
          {"merge_seconds", Value(best_time(times.merge))},
          {"partition_seconds", Value(best_time(times.partition))},
          {"best_seconds", Value(best_time(times.all))},
          {"median_seconds", Value(median_time(times.all))},
          {"bytes", Value(times.bytes)}};
}

}  // namespace

Report measure_regions(const RegionBenchOptions& options) {
  ops::register_all_ops();
  add_region_compiler();
  Array<Value> rows;
  for (const auto& [name, block] : {std::pair("residual", &kResidual), std::pair("attention", &kAttention)}) {
    double of_tenth = 0;
    for (const int64_t ops : {options.ops / 10, options.ops}) {
      Report row = region_row(name, *block, ops, options.rounds);
      const double best = row.at("best_seconds").as<double>();
      row.set("growth", of_tenth > 0 ? Value(best / of_tenth) : Value());
      of_tenth = best;
      rows.push_back(Value(row));
    }
  }
  return {{"programs", Value(rows)}};
}

}  // namespace headrace::bench
