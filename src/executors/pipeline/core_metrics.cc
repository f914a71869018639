#include <algorithm>

#include "executors/pipeline/core.h"

namespace headrace::executors::pipeline {
namespace {

Durations durations_of(const Histogram& histogram) {
  return {.median = histogram.quantile(0.5),
          .p90 = histogram.quantile(0.9),
          .p99 = histogram.quantile(0.99),
          .most = histogram.most()};
}

StageMetrics metrics_of(const Stage& stage) {
  StageMetrics metrics{.name = stage.spec.name, .backend = stage.spec.backend, .replicas = stage.replicas.size()};
  for (const std::unique_ptr<Replica>& replica : stage.replicas) {
    metrics.items += replica->items.get();
    metrics.errors += replica->errors.get();
    metrics.skipped += replica->skipped.get();
    metrics.batches += replica->batches.get();
    metrics.waited_ns += replica->waited_ns.get();
    metrics.busy_ns += replica->busy_ns.get();
    metrics.starved_ns += replica->starved_ns.get();
    metrics.blocked_ns += replica->blocked_ns.get();
    if (const std::optional<CodeProcess> process = replica->code->process()) {
      metrics.pids.push_back(process->pid);
      metrics.restarts += process->restarts;
    }
  }
  metrics.run = durations_of(stage.run_ns);
  return metrics;
}

double busy_share(const StageMetrics& stage) {
  return static_cast<double>(stage.busy_ns) / static_cast<double>(stage.replicas);
}

}  // namespace

PipelineMetrics Core::metrics() const {
  if (is_forked()) return {};
  const auto outcome = [&](size_t kind) { return outcomes_[kind].load(std::memory_order_relaxed); };
  const auto failures = [&](FailureKind kind) { return outcome(static_cast<size_t>(kind)); };
  PipelineMetrics metrics{
      .submitted = submitted_.load(std::memory_order_relaxed),
      .succeeded = outcome(kSuccess),
      .failed = failures(FailureKind::stage_failed) + failures(FailureKind::stage_timeout) +
                failures(FailureKind::stage_lost),
      .cancelled = failures(FailureKind::cancelled),
      .expired = failures(FailureKind::deadline),
      .dropped = failures(FailureKind::dropped),
      .stopped = failures(FailureKind::stopped),
      .refused = refused_.load(std::memory_order_relaxed),
      .in_flight = entrance_.num_taken(),
      .waiting = entrance_.num_waiting(),
      .elapsed_ns = static_cast<uint64_t>(
          std::chrono::nanoseconds(Clock::now() - started_.load(std::memory_order_relaxed)).count()),
      .latency = durations_of(latency_),
  };
  for (const std::unique_ptr<Stage>& stage : flow_->stages()) metrics.stages.push_back(metrics_of(*stage));
  const auto busiest =
      std::max_element(metrics.stages.begin(), metrics.stages.end(),
                       [](const StageMetrics& a, const StageMetrics& b) { return busy_share(a) < busy_share(b); });
  if (busiest->busy_ns > 0) metrics.bottleneck = busiest->name;
  return metrics;
}

}  // namespace headrace::executors::pipeline
