// headrace-bench: the benchmarks that need one process for the measured and the limit it is held against. ./dev bench
// calls it.
#include <headrace/status.h>

#include <iostream>

#include "bench/kernels.h"
#include "bench/labels.h"
#include "bench/passes.h"
#include "bench/regions.h"
#include "cost/probes.h"
#include "bench/scaling.h"
#include "bench/split.h"
#include "bench/stream.h"
#include "bench/stream_simulated.h"
#include "tools/headrace/output.h"
#include "tools/headrace/report_failure.h"
#include "object/array.h"
#include "runtime/thread_pool.h"

namespace headrace::bench {

namespace {

using tools::Report;

Report probe_machine(int threads, double seconds) {
  const cost::Caches caches = cost::read_caches();
  return {{"threads", Value(int64_t{threads})},
          {"fma_instructions", Value(cost::fma_instructions())},
          {"fma_gflops", Value(cost::fma_gflops(threads, seconds))},
          {"l2_gigabytes", Value(cost::read_gigabytes(threads, caches.l2 / 2, seconds))},
          {"l3_gigabytes", Value(cost::read_gigabytes(threads, std::min(4 * caches.l2, caches.l3 / 2), seconds))},
          {"dram_gigabytes", Value(cost::read_gigabytes(threads, 2 * caches.l3, seconds))}};
}

Value hop(double seconds) {
  const std::optional<double> nanoseconds = cost::hop_nanoseconds(seconds);
  return nanoseconds ? Value(*nanoseconds) : Value();
}

std::string number(const Report& report, const char* key) { return fmt::format("{:.1f}", report.at(key).as<double>()); }

void print_probes(const Array<Value>& probes, const Value& hop_ns) {
  std::vector<std::vector<std::string>> rows{{"threads", "FMA GFLOP/s", "with", "L2 GB/s", "L3 GB/s", "DRAM GB/s"}};
  for (const Value& probe : probes) {
    const auto report = probe.as<Report>();
    rows.push_back({std::to_string(report.at("threads").as<int64_t>()), number(report, "fma_gflops"),
                    report.at("fma_instructions").as<std::string>(), number(report, "l2_gigabytes"),
                    number(report, "l3_gigabytes"), number(report, "dram_gigabytes")});
  }
  std::cout << tools::to_table(rows);
  if (hop_ns.is<double>()) fmt::print("core-to-core hop: {:.0f} ns\n", hop_ns.as<double>());
}

void print_kernels(const Report& report) {
  fmt::print("{} thread(s), {} weights; peaks: {} GFLOP/s, L2 {}, L3 {}, DRAM {} GB/s\n",
             report.at("threads").as<int64_t>(), report.at("weights").as<std::string>(), number(report, "fma_gflops"),
             number(report, "l2_gigabytes"), number(report, "l3_gigabytes"), number(report, "dram_gigabytes"));
  std::vector<std::vector<std::string>> rows{{"kernel", "best", "GFLOP/s", "bound by", "share"}};
  for (const Value& value : report.at("kernels").as<Array<Value>>()) {
    const auto kernel = value.as<Report>();
    rows.push_back({kernel.at("name").as<std::string>(), tools::show_seconds(kernel.at("best_seconds").as<double>()),
                    number(kernel, "gflops"), kernel.at("bound").as<std::string>(),
                    fmt::format("{:.0f} %", kernel.at("share").as<double>() * 100)});
  }
  std::cout << tools::to_table(rows);
}

void print_passes(const Report& report) {
  std::vector<std::vector<std::string>> rows{{"program", "infer best", "median", "passes best", "median"}};
  for (const Value& value : report.at("programs").as<Array<Value>>()) {
    const auto program = value.as<Report>();
    std::vector<std::string> row{program.at("name").as<std::string>()};
    for (const char* part : {"infer", "passes"}) {
      const auto times = program.at(part).as<Report>();
      for (const char* key : {"best_seconds", "median_seconds"})
        row.push_back(tools::show_seconds(times.at(key).as<double>()));
    }
    rows.push_back(std::move(row));
  }
  std::cout << tools::to_table(rows);
}

void print_labels(const Report& report) {
  std::vector<std::vector<std::string>> rows{{"graph", "nodes", "labels", "method", "best", "cost", "gap"}};
  for (const Value& value : report.at("problems").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    rows.push_back({one.at("name").as<std::string>(), std::to_string(one.at("nodes").as<int64_t>()),
                    std::to_string(one.at("labels").as<int64_t>()), one.at("method").as<std::string>(),
                    tools::show_seconds(one.at("best_seconds").as<double>()),
                    std::to_string(one.at("cost").as<int64_t>()),
                    fmt::format("{:.2f} %", one.at("gap").as<double>() * 100)});
  }
  std::cout << tools::to_table(rows);
}

std::string ratio_text(const Value& ratio) { return ratio.is_none() ? "-" : fmt::format("{:.1f}", ratio.as<double>()); }

void print_regions(const Report& report) {
  std::vector<std::vector<std::string>> rows{
      {"graph", "ops", "regions", "infer", "annotate", "merge", "partition", "all best", "median", "growth", "bytes"}};
  for (const Value& value : report.at("programs").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    std::vector<std::string> row{one.at("name").as<std::string>(), std::to_string(one.at("ops").as<int64_t>()),
                                 std::to_string(one.at("regions").as<int64_t>())};
    for (const char* key :
         {"infer_seconds", "annotate_seconds", "merge_seconds", "partition_seconds", "best_seconds", "median_seconds"})
      row.push_back(tools::show_seconds(one.at(key).as<double>()));
    row.push_back(ratio_text(one.at("growth")));
    row.push_back(tools::show_bytes(one.at("bytes").as<int64_t>()));
    rows.push_back(std::move(row));
  }
  std::cout << tools::to_table(rows);
}

// Rows of the costs of one request.
void add_costs(std::vector<std::vector<std::string>>& rows, const Report& report) {
  const auto nanoseconds = [&](const char* key) { return fmt::format("{:.3f} us", report.at(key).as<double>() / 1e3); };
  const auto count = [&](const char* key) {
    const Value& value = report.at(key);
    return value.is_none() ? "-" : fmt::format("{:.0f}", value.as<double>());
  };
  rows.push_back({"one more stage in a group", nanoseconds("hop_in_group_ns"), "<= 0.10 us"});
  rows.push_back({"  its instructions", count("hop_in_group_instructions"), ""});
  rows.push_back({"one more group", nanoseconds("hop_across_groups_ns"), "<= 0.5 us"});
  rows.push_back({"  its instructions", count("hop_across_groups_instructions"), "<= 600"});
  rows.push_back({"a call that is traced", nanoseconds("trace_ns"), ""});
  rows.push_back({"round trip while idle (median)", nanoseconds("idle_round_trip_ns"), ""});
  rows.push_back(
      {"4 MB tensors by 64 bytes", fmt::format("{:.2f}", report.at("large_by_small").as<double>()), "<= 1.05"});
}

void print_streams(const Report& report) {
  const auto percent = [](const Value& share) { return fmt::format("{:.1f} %", share.as<double>() * 100); };
  std::vector<std::vector<std::string>> rows{{"what", "measured", "limit"}};
  add_costs(rows, report);
  std::cout << tools::to_table(rows);
  const auto hops = report.at("hop_nanoseconds").as<Array<Value>>();
  if (hops[0].is<double>() && hops[1].is<double>())
    fmt::print("core-to-core hop: {:.0f} ns before, {:.0f} ns after; one more group waits for some of them\n",
               hops[0].as<double>(), hops[1].as<double>());
  rows = {{"share of the bound", "median", "95 % interval", "limit", ""}};
  for (const Value& value : report.at("bounds").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    rows.push_back({one.at("name").as<std::string>(), percent(one.at("share")),
                    fmt::format("{} to {}", percent(one.at("share_low")), percent(one.at("share_high"))),
                    fmt::format(">= {:.0f} %", one.at("limit").as<double>() * 100),
                    one.at("holds").as<bool>() ? "" : "below"});
  }
  std::cout << '\n' << tools::to_table(rows);
  rows = {{"peer", "one more stage", "ours by theirs", "4 sleeping stages", "ours by theirs"}};
  for (const Value& value : report.at("peers").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    const Value& ratio = one.at("hop_ratio");
    rows.push_back({fmt::format("{}{}", one.at("name").as<std::string>(),
                                one.at("has_threads").as<bool>() ? ", a thread each" : ""),
                    fmt::format("{:.3f} us", one.at("hop_ns").as<double>() / 1e3),
                    ratio.is_none() ? "-" : fmt::format("{:.2f}", ratio.as<double>()), percent(one.at("share_of_four")),
                    fmt::format("{:.2f}", one.at("share_ratio").as<double>())});
  }
  if (rows.size() == 1) fmt::print("\nno peers: oneTBB and GStreamer were not there when this was built\n");
  if (rows.size() > 1) std::cout << '\n' << tools::to_table(rows);
}

void print_predictions(const Report& report) {
  std::vector<std::vector<std::string>> rows{
      {"pipeline", "predicted", "achieved", "ratio", "95 % interval", "limit", ""}};
  for (const Value& value : report.at("pipelines").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    const auto ratio = [&](const char* key) { return fmt::format("{:.3f}", one.at(key).as<double>()); };
    rows.push_back(
        {one.at("name").as<std::string>(), number(one, "predicted_per_second"), number(one, "achieved_per_second"),
         ratio("ratio"), fmt::format("{} to {}", ratio("ratio_low"), ratio("ratio_high")),
         fmt::format("1 +- {:.2f}", one.at("limit").as<double>()), one.at("holds").as<bool>() ? "" : "outside"});
  }
  std::cout << tools::to_table(rows);
}

void print_split(const Report& report) {
  std::vector<std::vector<std::string>> rows{
      {"graph", "nodes", "downsets", "method", "stages", "period", "gap", "best"}};
  for (const Value& value : report.at("graphs").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    const int64_t downsets = one.at("downsets").as<int64_t>();
    rows.push_back({one.at("name").as<std::string>(), std::to_string(one.at("nodes").as<int64_t>()),
                    downsets == 0 ? "-" : std::to_string(downsets), one.at("method").as<std::string>(),
                    std::to_string(one.at("stages").as<int64_t>()),
                    tools::show_seconds(one.at("period_seconds").as<double>()),
                    fmt::format("{:.2f} %", one.at("gap").as<double>() * 100),
                    tools::show_seconds(one.at("best_seconds").as<double>())});
  }
  std::cout << tools::to_table(rows);
}

// Each kind of work with its ratios of seconds and of bytes, one line a work; `!` where one is more than linear.
void print_scaling(const Report& report) {
  std::vector<std::vector<std::string>> rows{
      {"shape", "size", "work", "seconds", "bytes", "time", "space", "", "note"}};
  const double linear = report.at("linear_ratio").as<double>();
  for (const Value& value : report.at("rows").as<Array<Value>>()) {
    const auto one = value.as<Report>();
    const Value& time = one.at("time_ratio");
    const Value& space = one.at("bytes_ratio");
    const bool is_marked =
        time.is_none() || time.as<double>() > linear || (!space.is_none() && space.as<double>() > linear);
    rows.push_back({one.at("shape").as<std::string>(), std::to_string(one.at("size").as<int64_t>()),
                    one.at("work").as<std::string>(), tools::show_seconds(one.at("seconds").as<double>()),
                    tools::show_bytes(one.at("bytes").as<int64_t>()), ratio_text(time), ratio_text(space),
                    is_marked ? "!" : "", one.at("note").as<std::string>().substr(0, 100)});
  }
  std::cout << tools::to_table(rows);
}

void print(const Report& report, bool json, void (*as_text)(const Report&)) {
  if (json) {
    std::cout << tools::to_json(report);
  } else {
    as_text(report);
  }
}

void probes_verb(int threads, double seconds, bool only_hop, bool json) {
  Array<Value> probes;
  for (const int count : threads > 1 ? std::vector<int>{1, threads} : std::vector<int>{1}) {
    if (!only_hop) probes.push_back(Value(probe_machine(count, seconds)));
  }
  const Value hop_ns = hop(seconds);
  if (json) {
    std::cout << tools::to_json({{"hop_nanoseconds", hop_ns}, {"probes", Value(probes)}});
  } else {
    print_probes(probes, hop_ns);
  }
}

void add_kernels_verb(CLI::App& app, KernelOptions& options) {
  CLI::App* verb = app.add_subcommand("kernels", "Listed shapes as shares of what the machine can do");
  verb->add_option("--threads", options.threads)->check(CLI::Range(1, runtime::kMaxWorkers))->capture_default_str();
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000))->capture_default_str();
  verb->add_option("--only", options.only, "Kernels whose name contains this");
}

void add_passes_verb(CLI::App& app, PassBenchOptions& options) {
  CLI::App* verb = app.add_subcommand("passes", "Inference and the optimising passes, without code generation");
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 100000))->capture_default_str();
  verb->add_option("--ops", options.ops, "Of the chain")->check(CLI::Range(1, 1000000))->capture_default_str();
  verb->add_option("models", options.models, "ONNX files, besides the chain");
}

void add_labels_verb(CLI::App& app, LabelBenchOptions& options) {
  CLI::App* verb = app.add_subcommand("labels", "Least-cost labels of graphs shaped like networks, by each method");
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--nodes", options.nodes)->check(CLI::Range(20, 10'000'000))->capture_default_str();
  verb->add_option("--labels", options.labels)->check(CLI::Range(2, 255))->capture_default_str();
}

void add_regions_verb(CLI::App& app, RegionBenchOptions& options) {
  CLI::App* verb =
      app.add_subcommand("regions", "Regions of another compiler by Relay's passes, without type inference");
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--ops", options.ops)->check(CLI::Range(200, 10'000'000))->capture_default_str();
}

void add_split_verb(CLI::App& app, SplitBenchOptions& options) {
  CLI::App* verb = app.add_subcommand("split", "Stages of a pipeline for graphs shaped like networks");
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--nodes", options.nodes, "Of the residual blocks")
      ->check(CLI::Range(20, 10'000'000))
      ->capture_default_str();
  verb->add_option("--devices", options.devices)->check(CLI::Range(1, 64))->capture_default_str();
}

void add_stream_verb(CLI::App& app, StreamBenchOptions& options, const std::string& name, const std::string& about) {
  CLI::App* verb = app.add_subcommand(name, about);
  verb->add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  verb->add_option("--items", options.items, "Of each stream")
      ->check(CLI::Range(20, 10'000'000))
      ->capture_default_str();
  verb->add_option("--sleep", options.sleep_seconds, "Seconds of a stage that sleeps")
      ->check(CLI::Range(0.0001, 1.0))
      ->capture_default_str();
}

void add_scaling_verb(CLI::App& app, ScalingOptions& options) {
  CLI::App* verb = app.add_subcommand("scaling", "How time grows with a program: ratios of a doubled size");
  verb->add_option("--shape", options.shape, "Shapes whose name contains this");
  verb->add_option("--work", options.work, "Kinds of work whose name contains this");
  verb->add_option("--size", options.size, "Times the size of each shape")
      ->check(CLI::Range(0.0001, 1000.0))
      ->capture_default_str();
  verb->add_option("--rounds", options.rounds, "At most; three where the times are linear")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  verb->add_option("--limit", options.limit_s, "Seconds of processor time for one kind of work over one shape")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
}

struct BenchOptions {
  bool json = false, only_hop = false;
  double seconds = 0.1;  // measuring time per probe
  int threads = runtime::num_processors();
  KernelOptions kernels;
  PassBenchOptions passes;
  LabelBenchOptions labels;
  RegionBenchOptions regions;
  SplitBenchOptions split;
  StreamBenchOptions stream;
  ScalingOptions scaling;
};

void add_verbs(CLI::App& app, BenchOptions& options) {
  app.add_flag("--json", options.json, "Print one JSON object instead of text");
  app.add_option("--seconds", options.seconds, "For each probe")->check(CLI::Range(0.001, 60.0))->capture_default_str();
  CLI::App* probes = app.add_subcommand("probes", "What the machine can do: FMA peak, bandwidths, core-to-core hop");
  probes->add_option("--threads", options.threads, "Besides one")
      ->check(CLI::Range(1, runtime::kMaxWorkers))
      ->capture_default_str();
  probes->add_flag("--only-hop", options.only_hop, "The hop alone");
  add_kernels_verb(app, options.kernels);
  add_passes_verb(app, options.passes);
  add_labels_verb(app, options.labels);
  add_regions_verb(app, options.regions);
  add_split_verb(app, options.split);
  add_stream_verb(app, options.stream, "pipeline", "Streams through stages that do nothing, sleep or compute");
  add_stream_verb(app, options.stream, "predict",
                  "Streams through stages that sleep, beside what the simulator predicts");
  add_scaling_verb(app, options.scaling);
}

void run_verb(const std::string& verb, BenchOptions& options) {
  if (verb == "probes") {
    probes_verb(options.threads, options.seconds, options.only_hop, options.json);
  } else if (verb == "passes") {
    print(measure_passes(options.passes), options.json, print_passes);
  } else if (verb == "labels") {
    print(measure_labels(options.labels), options.json, print_labels);
  } else if (verb == "regions") {
    print(measure_regions(options.regions), options.json, print_regions);
  } else if (verb == "split") {
    print(measure_split(options.split), options.json, print_split);
  } else if (verb == "pipeline") {
    print(measure_streams(options.stream), options.json, print_streams);
  } else if (verb == "predict") {
    print(measure_predictions(options.stream), options.json, print_predictions);
  } else if (verb == "scaling") {
    print(measure_scaling(options.scaling), options.json, print_scaling);
  } else {
    options.kernels.probe_seconds = options.seconds;
    print(measure_kernels(options.kernels), options.json, print_kernels);
  }
}

int run(int argc, char** argv) {
  CLI::App app{"Measures the machine, and kernels against it.", "headrace-bench"};
  app.require_subcommand(1);
  app.fallthrough();
  BenchOptions options;
  add_verbs(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? HR_OK : HR_USAGE;
  }
  run_verb(app.get_subcommands().front()->get_name(), options);
  return HR_OK;
}

}  // namespace

}  // namespace headrace::bench

int main(int argc, char** argv) {
  try {
    return headrace::bench::run(argc, argv);
  } catch (const std::exception& error) {
    return headrace::tools::report_failure("headrace-bench", error);
  }
}
