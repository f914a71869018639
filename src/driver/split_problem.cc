#include "driver/split_problem.h"

#include <cmath>
#include <map>

#include "driver/all_backends.h"
#include "driver/stage_buffers.h"

namespace headrace::driver {

namespace {

using Kind = ProgramTensor::Kind;

constexpr int64_t kHandOverNs = 2'000;  // passing a tensor between two threads, beside its bytes

int64_t nanoseconds_of(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// Options of backends that only other places have are left out, since a compile refuses options without effect.
PlaceKind make_kind(CompileOptions compile, double speed) {
  const partition::Backends backends = chosen_backends(compile);
  drop_unused_options(compile, backends);
  std::vector<std::string> names;
  for (const auto& backend : backends) names.emplace_back(backend->name());
  names.emplace_back(partition::kNative);
  partition::OpCosts costs = op_costs(backends, compile);
  if (backends.empty()) {  // a compile refuses placement by cost without backends
    compile.placement = Placement::order;
    compile.costs.clear();
  }
  return {.name = fmt::format("{}{}", fmt::join(names, ", "), speed == 1 ? "" : fmt::format(" at speed {}", speed)),
          .compile = std::move(compile),
          .costs = std::move(costs),
          .speed = speed};
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
    add_buffers(line_, [&](const relay::CallNode& call) { return places_.may_leave_native_code(call); }, problem_);
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
    for (const Type& leaf : leaves_of(call.checked_type())) size_bytes_of(leaf, call.span);  // refuses unknown sizes
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

  // Transfers of simulated devices run beside compute, at both ends.
  void add_devices() {
    const auto count = static_cast<size_t>(options_.stages);
    for (size_t i = 0; i < count; ++i) {
      const devices::SimulatedDevice* simulated = device_of(i);
      plan::SplitDevice device{.name = simulated == nullptr ? fmt::format("stage{}", i) : name_of(*simulated),
                               .kind = places_.kind_of[i],
                               .memory_bytes = memory_to_search(i),
                               .overlaps = !options_.devices.empty()};
      for (size_t other = 0; other < count; ++other) device.links.push_back(link_between(i, other));
      problem_.devices.push_back(std::move(device));
    }
  }

  const devices::SimulatedDevice* device_of(size_t place) const {
    const bool has_one = !options_.devices.empty() && options_.devices[place].has_value();
    return has_one ? &*options_.devices[place] : nullptr;
  }

  // Between two devices a tensor passes both links, one after the other.
  plan::SplitLink link_between(size_t from, size_t to) const {
    plan::SplitLink link{.latency_ns = 0};
    double seconds_per_byte = 0;
    for (const devices::SimulatedDevice* end : {device_of(from), device_of(to)}) {
      if (end == nullptr) continue;
      link.latency_ns += end->latency_ns;
      if (end->bytes_per_second > 0) seconds_per_byte += 1 / static_cast<double>(end->bytes_per_second);
    }
    if (device_of(from) == nullptr && device_of(to) == nullptr)
      return {.bytes_per_second = static_cast<int64_t>(machine_.dram_gigabytes * 1e9), .latency_ns = kHandOverNs};
    if (seconds_per_byte > 0) link.bytes_per_second = std::max<int64_t>(1, std::llround(1 / seconds_per_byte));
    return link;
  }

  // Returns the memory of a place without the slots of the model's inputs and outputs, which pass the link of a
  // simulated device: the search does not know which stages have them.
  int64_t memory_to_search(size_t place) const {
    const int64_t bytes = memory_limit(options_, place);
    const devices::SimulatedDevice* device = device_of(place);
    if (device == nullptr || device->memory_bytes == 0) return bytes;
    const int64_t left = device->memory_bytes - plan::kBorderCopies * border_bytes();
    if (left <= 0)
      throw_user_error("{} has {} of memory, which {} of the model's inputs and outputs, {} times each, fill",
                       name_of(*device), devices::memory_text(device->memory_bytes),
                       devices::memory_text(border_bytes()), plan::kBorderCopies);
    return std::min(bytes, left);
  }

  // Returns the bytes of the inputs and outputs of the model.
  int64_t border_bytes() const {
    int64_t bytes = 0;
    for (const relay::Var& param : line_.main->params) {
      for (const Type& leaf : leaves_of(param->checked_type())) bytes += size_bytes_of(leaf, param->span);
    }
    for (const ProgramTensor& result : line_.results) bytes += size_bytes_of(result.type, line_.main->span);
    return bytes;
  }

  const StraightLine& line_;
  const cost::Machine& machine_;
  const Places& places_;
  const SplitModelOptions& options_;
  plan::SplitProblem problem_;
  std::map<std::tuple<Kind, size_t, size_t>, size_t> known_;  // tensors by their kind, owner and index
};

}  // namespace

int64_t memory_limit(const SplitModelOptions& options, size_t place) {
  const std::vector<int64_t>& given = options.memory_bytes;
  int64_t bytes = given.empty() ? plan::kNoMemoryLimit : given[given.size() == 1 ? 0 : place];
  const bool is_simulated = !options.devices.empty() && options.devices[place].has_value();
  if (is_simulated && options.devices[place]->memory_bytes > 0)
    bytes = std::min(bytes, options.devices[place]->memory_bytes);
  return bytes;
}

double PlaceKind::seconds(const relay::CallNode& call) const {
  const std::vector<partition::LabelSeconds> all = costs.of(call);  // natively, then by the backends that take it
  if (compile.placement == Placement::order) return all[all.size() > 1 ? 1 : 0].seconds / speed;
  double least = INFINITY;
  for (const partition::LabelSeconds& one : all) least = std::min(least, one.seconds);
  return least / speed;
}

bool Places::may_leave_native_code(const relay::CallNode& call) const {
  return std::any_of(kinds.begin(), kinds.end(), [&](const PlaceKind& kind) { return kind.costs.of(call).size() > 1; });
}

Places make_places(const CompileOptions& compile, const SplitModelOptions& options) {
  Places places;
  std::map<std::pair<std::vector<std::string>, double>, int32_t> known;
  for (size_t i = 0; i < static_cast<size_t>(options.stages); ++i) {
    const std::vector<std::string>& backends = options.backends.empty() ? compile.backends : options.backends[i];
    const bool is_simulated = !options.devices.empty() && options.devices[i].has_value();
    const double speed = is_simulated ? options.devices[i]->speed : 1;
    const auto [kind, is_new] = known.try_emplace({backends, speed}, static_cast<int32_t>(places.kinds.size()));
    if (is_new) {
      CompileOptions of_kind = compile;
      of_kind.backends = backends;
      places.kinds.push_back(make_kind(std::move(of_kind), speed));
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
