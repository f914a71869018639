#include "bench/scaling.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <limits>

#include "bench/count_allocations.h"
#include "bench/scaling_shapes.h"
#include "bench/scaling_work.h"
#include "object/array.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::bench {

namespace {

using tools::Report;

struct Cost {
  double seconds = std::numeric_limits<double>::infinity();
  int64_t bytes = 0;
  std::string note;  // message of the error that ended the work
};

// Returns the processor time of this thread: under a limit of processor time the clock of a process advances in steps
// of the scheduler.
double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void run_once(const ScalingWork& work, const ScalingProgram& program, Cost& cost) {
  work.run(program, [&](const std::function<void()>& timed) {
    const double begin = processor_seconds();
    const int64_t bytes = allocated_bytes();
    try {
      timed();
    } catch (const UserError& error) {
      cost.note = error.message().substr(0, error.message().find('\n'));
    }
    cost.seconds = std::min(cost.seconds, processor_seconds() - begin);
    cost.bytes = allocated_bytes() - bytes;
  });
}

// Takes the best of three runs, or of more while short times are not linear, because a busy machine disturbs them.
void measure(const ScalingWork& work, const ScalingProgram (&programs)[2], int rounds, Cost (&costs)[2]) {
  const double begin = processor_seconds();
  const auto is_linear = [&] { return costs[1].seconds <= kLinearRatio * costs[0].seconds; };
  for (int round = 0; round < rounds && (round < 3 || !is_linear()); ++round) {
    for (int i = 0; i < 2; ++i) run_once(work, programs[i], costs[i]);
    if (processor_seconds() - begin > 2) break;
  }
}

// In a process of its own: its answer goes through a pipe.
[[noreturn]] void answer(const ScalingWork& work, const ScalingProgram (&programs)[2], int rounds, int pipe_end) {
  std::string text;
  try {
    Cost costs[2];
    measure(work, programs, rounds, costs);
    const auto& [small, large] = costs;
    text = fmt::format("{} {} {} {} {}", small.seconds, large.seconds, small.bytes, large.bytes, large.note);
  } catch (const std::exception& error) {
    text = fmt::format("0 0 0 0 {}", error.what());
  }
  const ssize_t written = write(pipe_end, text.data(), std::min<size_t>(text.size(), 4000));
  _exit(written < 0 ? 1 : 0);
}

std::string run_apart(const ScalingWork& work, const ScalingProgram (&programs)[2], const ScalingOptions& options) {
  int ends[2];
  if (pipe(ends) != 0) throw InternalError("no pipe to a process that measures");
  const pid_t child = fork();
  if (child < 0) throw InternalError("no process to measure in");
  if (child == 0) {
    const auto seconds = static_cast<rlim_t>(options.limit_s);
    const rlimit limit{seconds, seconds + 1};
    setrlimit(RLIMIT_CPU, &limit);
    answer(work, programs, options.rounds, ends[1]);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t size = read(ends[0], text.data(), text.size());
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return text;
  if (WTERMSIG(status) == SIGXCPU) return fmt::format("0 0 0 0 more than {} s", options.limit_s);
  return fmt::format("0 0 0 0 ended by signal {}", WTERMSIG(status));
}

Report row_of(const ScalingShape& shape, int64_t size, const ScalingWork& work, const std::string& text) {
  double seconds[2] = {0, 0};
  long long bytes[2] = {0, 0};
  int at = 0;
  std::sscanf(text.c_str(), "%lf %lf %lld %lld %n", &seconds[0], &seconds[1], &bytes[0], &bytes[1], &at);
  const auto ratio = [](double small, double large) { return small > 0 ? Value(large / small) : Value(); };
  return {{"shape", Value(shape.name)},
          {"size", Value(2 * size)},
          {"work", Value(work.name)},
          {"seconds", Value(seconds[1])},
          {"time_ratio", ratio(seconds[0], seconds[1])},
          {"bytes", Value(int64_t{bytes[1]})},
          {"bytes_ratio", ratio(static_cast<double>(bytes[0]), static_cast<double>(bytes[1]))},
          {"note", Value(text.substr(static_cast<size_t>(at)))}};
}

// Makes the inputs of all works; infers types where possible.
ScalingProgram make_program(const ScalingShape& shape, int64_t size) {
  ScalingProgram program;
  program.text = shape.text(size);
  program.module = relay::parse_module(program.text, shape.name);
  try {
    program.typed = relay::infer_type(program.module);
  } catch (const UserError&) {  // the row of InferType says why
  }
  return program;
}

}  // namespace

Report measure_scaling(const ScalingOptions& options) {
  ops::register_all_ops();
  Array<Value> rows;
  for (const ScalingShape& shape : scaling_shapes()) {
    if (std::string_view(shape.name).find(options.shape) == std::string_view::npos) continue;
    const int64_t size = std::max<int64_t>(2, std::llround(static_cast<double>(shape.size) * options.size));
    const ScalingProgram programs[] = {make_program(shape, size), make_program(shape, 2 * size)};
    for (const ScalingWork& work : scaling_works()) {
      if (work.name.find(options.work) == std::string::npos || (work.needs_types && !programs[1].typed)) continue;
      rows.push_back(Value(row_of(shape, size, work, run_apart(work, programs, options))));
    }
  }
  return {{"linear_ratio", Value(kLinearRatio)}, {"rows", Value(rows)}};
}

}  // namespace headrace::bench
