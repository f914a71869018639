#include "driver/split_problem.h"

#include <cmath>
#include <map>

#include "driver/all_backends.h"

namespace headrace::driver {

namespace {

using Kind = ProgramTensor::Kind;

constexpr int64_t kHandOverNs = 2'000;  // passing a tensor between two threads, beside its bytes

int64_t nanoseconds_of(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// Options of backends that only other places have are left out, since a compile refuses options without effect.
PlaceKind make_kind(CompileOptions compile) {
  const partition::Backends backends = chosen_backends(compile);
  std::erase_if(compile.backend_options, [&](const auto& options) {
    const std::string own(require_backend(options.first)->name());
    return std::none_of(backends.begin(), backends.end(), [&](const auto& one) { return one->name() == own; });
  });
  std::vector<std::string> names;
  for (const auto& backend : backends) names.emplace_back(backend->name());
  names.emplace_back(partition::kNative);
  partition::OpCosts costs = op_costs(backends, compile);
  return {.name = fmt::format("{}", fmt::join(names, ", ")), .compile = std::move(compile), .costs = std::move(costs)};
}

class ProblemMaker {
 public:
  ProblemMaker(const StraightLine& line, const cost::Machine& machine, const Places& places,
               const SplitModelOptions& options)
      : line_(line), machine_(machine), places_(places), options_(options) {}

  plan::SplitProblem make() {
    for (const PlaceKind& kind : places_.kinds) problem_.kinds.push_back(kind.name);
    problem_.max_replicas = options_.replicas;
    for (size_t i = 0; i < line_.calls.size(); ++i) add_call(i);
    for (size_t i = 0; i < line_.calls.size(); ++i) {
      for (const std::vector<ProgramTensor>& arg : line_.args[i]) {
        for (const ProgramTensor& tensor : arg) add_reader(tensor, i);
      }
    }
    add_devices();
    return std::move(problem_);
  }

 private:
  void add_call(size_t number) {
    const relay::CallNode& call = *line_.calls[number];
    plan::SplitNode node{.name = fmt::format("{} {}", call.as_op()->name, number)};
    for (const Type& leaf : leaves_of(call.checked_type())) node.working_bytes += size_bytes_of(leaf, call.span);
    for (const PlaceKind& kind : places_.kinds) node.time_ns.push_back(nanoseconds_of(kind.seconds(call)));
    problem_.nodes.push_back(std::move(node));
  }

  void add_reader(const ProgramTensor& tensor, size_t call) {
    if (tensor.kind == Kind::param) return;
    const auto [at, is_new] = known_.try_emplace({tensor.kind, tensor.owner, tensor.index}, problem_.tensors.size());
    if (is_new)
      problem_.tensors.push_back({.producer = producer_of(tensor),
                                  .consumers = {},
                                  .size_bytes = size_bytes_of(tensor.type, line_.calls[call]->span)});
    std::vector<int32_t>& consumers = problem_.tensors[at->second].consumers;
    if (consumers.empty() || consumers.back() != static_cast<int32_t>(call))
      consumers.push_back(static_cast<int32_t>(call));
  }

  // Returns the node of a call, or a new one for a constant.
  int32_t producer_of(const ProgramTensor& tensor) {
    if (tensor.kind == Kind::call) return static_cast<int32_t>(tensor.owner);
    const relay::Constant& constant = line_.constants[tensor.owner];
    problem_.nodes.push_back({.time_ns = std::vector<int64_t>(places_.kinds.size(), 0),
                              .constant_bytes = size_bytes_of(constant->tensor_type(), constant->span),
                              .is_constant = true});
    return static_cast<int32_t>(problem_.nodes.size() - 1);
  }

  void add_devices() {
    const plan::SplitLink link{.bytes_per_second = static_cast<int64_t>(machine_.dram_gigabytes * 1e9),
                               .latency_ns = kHandOverNs};
    const auto count = static_cast<size_t>(options_.stages);
    for (size_t i = 0; i < count; ++i) {
      plan::SplitDevice device{.name = fmt::format("stage{}", i), .kind = places_.kind_of[i]};
      device.links.assign(count, link);
      if (!options_.memory_bytes.empty())
        device.memory_bytes = options_.memory_bytes[options_.memory_bytes.size() == 1 ? 0 : i];
      problem_.devices.push_back(std::move(device));
    }
  }

  const StraightLine& line_;
  const cost::Machine& machine_;
  const Places& places_;
  const SplitModelOptions& options_;
  plan::SplitProblem problem_;
  std::map<std::tuple<Kind, size_t, size_t>, size_t> known_;  // tensors by their kind, owner and index
};

}  // namespace

double PlaceKind::seconds(const relay::CallNode& call) const {
  const std::vector<partition::LabelSeconds> all = costs.of(call);  // natively, then by the backends that take it
  if (compile.placement == Placement::order) return all[all.size() > 1 ? 1 : 0].seconds;
  double least = INFINITY;
  for (const partition::LabelSeconds& one : all) least = std::min(least, one.seconds);
  return least;
}

Places make_places(const CompileOptions& compile, const SplitModelOptions& options) {
  Places places;
  std::map<std::vector<std::string>, int32_t> known;
  for (size_t i = 0; i < static_cast<size_t>(options.stages); ++i) {
    const std::vector<std::string>& backends = options.backends.empty() ? compile.backends : options.backends[i];
    const auto [kind, is_new] = known.try_emplace(backends, static_cast<int32_t>(places.kinds.size()));
    if (is_new) {
      CompileOptions of_kind = compile;
      of_kind.backends = backends;
      places.kinds.push_back(make_kind(std::move(of_kind)));
    }
    places.kind_of.push_back(kind->second);
  }
  for (const auto& [name, given] : compile.backend_options) {
    const bool is_used = std::any_of(places.kinds.begin(), places.kinds.end(), [&](const PlaceKind& kind) {
      return kind.compile.backend_options.contains(name);
    });
    if (!is_used)
      throw_user_error(
          "the options of the backend '{}' have no effect, because no stage has it; add it to the backends", name);
  }
  return places;
}

plan::SplitProblem make_split_problem(const StraightLine& line, const cost::Machine& machine, const Places& places,
                                      const SplitModelOptions& options) {
  return ProblemMaker(line, machine, places, options).make();
}

}  // namespace headrace::driver
