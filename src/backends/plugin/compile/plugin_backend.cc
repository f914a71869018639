#include "backends/plugin/compile/plugin_backend.h"

#include <cstdint>
#include <cstring>

#include "backends/plugin/compile/attr_view.h"
#include "backends/plugin/compile/graph_view.h"
#include "backends/plugin/run/message_room.h"
#include "backends/plugin/run/plugin_module.h"
#include "base/utf8.h"
#include "partition/checked_patterns.h"
#include "partition/false_composites.h"
#include "relay/infer/infer_type.h"
#include "relay/patterns/pattern_text.h"

// The room that a plugin writes to while it compiles.
struct hr_compile_sink {
  struct Blob {
    headrace::runtime::SavedModule saved;
    std::vector<uint64_t> graphs;
  };
  std::span<const hr_graph* const> graphs;
  bool takes_constants = false;                                          // its plugin has the function that loads them
  std::map<std::string, headrace::NDArray, std::less<>> constants = {};  // from all graphs, by content, once asked for
  std::vector<Blob> blobs = {};
  std::vector<bool> is_emitted = {};  // by graph
  std::map<uint64_t, headrace::Refusal> refused = {};
  std::string rejected = {};  // why the host did not take a call of the library; the last one counts
};

namespace headrace::backends::plugin {

namespace {

using partition::CompositePattern;
using partition::RegionCode;
using partition::Verdict;

// Answers a call of a library: 0, or -1 where `body` returns why the host does not take it. No exception passes through
// the frames of the library.
template <typename Body>
int32_t answer(hr_compile_sink* sink, Body&& body) noexcept {
  if (sink == nullptr) return -1;
  try {
    std::string fault = body();
    if (fault.empty()) return 0;
    sink->rejected = std::move(fault);
  } catch (const std::exception& error) {
    try {
      sink->rejected = error.what();
    } catch (const std::exception&) {
      sink->rejected.clear();  // no memory is left for it
    }
  }
  return -1;
}

// Returns why the graphs cannot be those of a blob; empty where they can.
std::string fault_of_graphs(const hr_compile_sink& sink, std::span<const uint64_t> graphs) {
  if (graphs.empty()) return "a blob was emitted for no graph";
  std::vector<bool> is_taken = sink.is_emitted;
  for (const uint64_t graph : graphs) {
    if (graph >= sink.graphs.size())
      return fmt::format("a blob was emitted for graph {}, and the request has {}", graph, sink.graphs.size());
    if (is_taken[static_cast<size_t>(graph)]) return fmt::format("graph {} was emitted twice", graph);
    is_taken[static_cast<size_t>(graph)] = true;
  }
  return "";
}

std::string fault_of_blob(const hr_compile_sink& sink, const void* blob, uint64_t size, const char* const* constants,
                          uint64_t num_constants) {
  if (blob == nullptr && size != 0) return fmt::format("a blob of {} bytes was emitted, and its address is NULL", size);
  if (size > static_cast<uint64_t>(PTRDIFF_MAX)) return fmt::format("a blob of {} bytes was emitted", size);
  if (num_constants == 0) return "";
  if (!sink.takes_constants) return "a blob with constants was emitted by a library without load_with_constants";
  return constants == nullptr ? fmt::format("a blob with {} constants was emitted without their names", num_constants)
                              : "";
}

int32_t emit_blob_with_constants(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t* graphs,
                                 uint64_t num_graphs, const char* const* constants, uint64_t num_constants) {
  if (sink != nullptr && sink->graphs.empty()) return 0;  // only the options are checked
  return answer(sink, [&]() -> std::string {
    const std::span<const uint64_t> indices(graphs, graphs == nullptr ? 0 : static_cast<size_t>(num_graphs));
    if (std::string fault = fault_of_graphs(*sink, indices); !fault.empty()) return fault;
    if (std::string fault = fault_of_blob(*sink, blob, size, constants, num_constants); !fault.empty()) return fault;
    runtime::SavedModule saved{.bytes = std::string(static_cast<const char*>(blob), static_cast<size_t>(size))};
    if (num_constants != 0 && sink->constants.empty()) {
      for (const hr_graph* graph : sink->graphs) collect_constants(graph, sink->constants);
    }
    for (uint64_t i = 0; i < num_constants; ++i) {
      const auto found = constants[i] == nullptr ? sink->constants.end() : sink->constants.find(constants[i]);
      if (found == sink->constants.end()) return fmt::format("constant {} of an emitted blob is in no graph", i);
      saved.constants.push_back(found->second);
    }
    sink->blobs.push_back({.saved = std::move(saved), .graphs = {indices.begin(), indices.end()}});
    for (const uint64_t graph : indices) sink->is_emitted[static_cast<size_t>(graph)] = true;
    return "";
  });
}

int32_t emit_blob(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t* graphs, uint64_t num_graphs) {
  return emit_blob_with_constants(sink, blob, size, graphs, num_graphs, nullptr, 0);
}

// A plugin may use reasons that say why an op or a region is not supported, and say that it failed.
hr_reason known_reason(int32_t reason) {
  const bool is_known = partition::is_refusal_reason(reason) || reason == HR_REASON_BACKEND_FAILED;
  return is_known ? static_cast<hr_reason>(reason) : HR_REASON_OP_UNSUPPORTED;
}

int32_t refuse_graph(hr_compile_sink* sink, uint64_t graph, int32_t reason, const char* message) {
  return answer(sink, [&]() -> std::string {
    if (graph >= sink->graphs.size())
      return fmt::format("graph {} was refused, and the request has {}", graph, sink->graphs.size());
    const std::string_view text(message == nullptr ? "" : message,
                                message == nullptr ? 0 : strnlen(message, MessageRoom::kBytes - 1));
    sink->refused[graph] = {known_reason(reason), text.empty() ? "it does not say why" : as_utf8(text)};
    return "";
  });
}

template <typename T>
hr_abi abi_of() {
  return {.size = sizeof(T), .major = HR_BACKEND_ABI_MAJOR, .minor = HR_BACKEND_ABI_MINOR};
}

hr_machine machine_row(const cost::Machine& machine) {
  constexpr double kGiga = 1e9;
  return {.abi = abi_of<hr_machine>(),
          .operations_per_second = cost::peak_gigaops(machine, DataType::float_(32)) * kGiga,
          .l2_bytes = machine.l2_bytes,
          .l3_bytes = machine.l3_bytes,
          .l2_rate = machine.l2_gigabytes * kGiga,
          .l3_rate = machine.l3_gigabytes * kGiga,
          .memory_rate = machine.dram_gigabytes * kGiga,
          .all_memory_rate = machine.all_dram_gigabytes * kGiga,
          .fork_seconds = machine.fork_seconds};
}

class PluginBackend : public partition::Backend {
 public:
  explicit PluginBackend(PluginPtr plugin) : plugin_(std::move(plugin)) {
    if (table().compile == nullptr)
      throw_user_error(
          "the backend '{}' of '{}' runs what was compiled elsewhere, and cannot compile; load a build of "
          "it that can",
          plugin_->name, plugin_->path);
    read_patterns();
  }
  ~PluginBackend() override {
    for (const CompositePattern& entry : patterns_) relay::release_recursions(entry.pattern);
  }
  PluginBackend(const PluginBackend&) = delete;
  PluginBackend& operator=(const PluginBackend&) = delete;
  std::string origin() const override { return origin_of(*plugin_); }

  std::string_view name() const override { return plugin_->name; }
  std::string version() const override { return plugin_->version; }
  std::span<const CompositePattern> patterns() const override { return patterns_; }

  Verdict supports(const relay::CallNode& call) const override {
    const Expected<Graph> graph = make_graph(call);
    if (!graph) return {.reason = graph.refusal().code, .message = graph.refusal().message};
    const hr_graph* view = graph.value().get();
    return ask(
        [&](hr_verdict* verdict) { table().supports(table().self, view, graph_api()->num_nodes(view) - 1, verdict); });
  }

  double cost(const relay::CallNode& call, const cost::Machine& machine, int threads) const override {
    const double native = Backend::cost(call, machine, threads);
    const double seconds = ask_cost(table().cost, call, {}, native, machine, threads).value_or(-1);
    return seconds < 0 ? native : seconds;
  }

  double saved(const relay::CallNode& call, const std::vector<const relay::CallNode*>& producers,
               const cost::Machine& machine, int threads) const override {
    if (table().saved == nullptr) return 0;
    return ask_cost(table().saved, call, producers, Backend::cost(call, machine, threads), machine, threads)
        .value_or(0);
  }

  double border(const Type& type, const cost::Machine& machine, int threads) const override {
    if (table().border == nullptr) return 0;
    const hr_machine row = machine_row(machine);
    if (const auto* tensor = type.as<TensorTypeNode>()) return border_of(*tensor, row, threads);
    double seconds = 0;
    for (const Type& leaf : leaves_of(type)) {
      const auto* tensor = leaf.as<TensorTypeNode>();
      if (tensor != nullptr) seconds += std::max(0.0, border_of(*tensor, row, threads));  // 0 also for NaN
    }
    return seconds;
  }

  bool one_call_per_region() const override { return table().one_call_per_region != 0; }

  std::vector<Expected<RegionCode>> compile(const partition::RegionRequest& request) const override;

 private:
  const hr_backend& table() const { return plugin_->table; }

  // Returns the library's answer, also one that is not a number of seconds.
  double border_of(const TensorTypeNode& tensor, const hr_machine& row, int threads) const {
    const auto shape = as_shape(tensor.shape);
    if (!shape) return 0;  // a backend cannot say what a size without a number costs
    const hr_border_query query{
        .abi = abi_of<hr_border_query>(),
        .tensor = {.dtype = tensor.dtype.raw(), .ndim = static_cast<int32_t>(shape->size()), .shape = shape->data()},
        .num_threads = threads,
        .machine = &row};
    return table().border(table().self, &query);
  }

  using CostFunction = double (*)(void* self, const hr_cost_query* query);

  // Returns nothing where the library cannot be asked.
  std::optional<double> ask_cost(CostFunction function, const relay::CallNode& call,
                                 const std::vector<const relay::CallNode*>& producers, double native,
                                 const cost::Machine& machine, int threads) const {
    if (function == nullptr) return {};
    const Expected<Graph> graph = make_graph(call, producers);
    if (!graph) return {};
    const hr_graph* view = graph.value().get();
    const hr_machine row = machine_row(machine);
    const hr_cost_query query{.abi = abi_of<hr_cost_query>(),
                              .graph = view,
                              .node = graph_api()->num_nodes(view) - 1,
                              .num_threads = threads,
                              .native_seconds = native,
                              .machine = &row};
    return function(table().self, &query);
  }

  template <typename F>
  static Verdict ask(F&& question) {
    MessageRoom room;
    hr_verdict verdict{.reason = HR_REASON_NONE, .message = *room.view()};
    question(&verdict);
    if (verdict.reason == HR_REASON_NONE) return {};
    return {.reason = known_reason(verdict.reason), .message = room.text()};
  }

  void read_patterns() {
    if (table().patterns == nullptr) return;
    try {
      patterns_ = partition::read_table(Value(std::string(table().patterns)));
    } catch (const UserError& error) {
      throw UserError(fmt::format("the patterns of the backend '{}' of '{}' cannot be read: {}", plugin_->name,
                                  plugin_->path, error.message()));
    }
    const std::string owner = fmt::format("the backend '{}' of '{}'", plugin_->name, plugin_->path);
    partition::check_pattern_names(owner, plugin_->name, patterns_);
    for (CompositePattern& entry : patterns_) {
      entry.accepts = [this, name = entry.name](const relay::PatternGroup& group, const Expr&) {
        return accepts(name, group);
      };
    }
    partition::check_patterns(owner, patterns_);
  }

  Verdict accepts(const std::string& pattern, const relay::PatternGroup& group) const {
    if (table().accepts == nullptr) return {};
    const Expr function = relay::infer_type(Expr(relay::function_of(group, 0)));
    const Expected<Graph> graph = make_graph(*function.as<relay::FunctionNode>(), pattern);
    if (!graph) return {.reason = graph.refusal().code, .message = graph.refusal().message};
    return ask(
        [&](hr_verdict* verdict) { table().accepts(table().self, pattern.c_str(), graph.value().get(), verdict); });
  }

  std::vector<Expected<RegionCode>> codes_of(const hr_compile_sink& sink) const;

  // The interface has options of three kinds.
  void check_options(const Map<std::string, Value>& options) const {
    for (const auto& [name, value] : options) {
      if (value.is<bool>() || value.is<int64_t>() || value.is<double>() || value.is<std::string>()) continue;
      throw_user_error("the option '{}' of the backend '{}' is neither a text, a number nor a boolean", name,
                       plugin_->name);
    }
  }

  PluginPtr plugin_;
  std::vector<CompositePattern> patterns_;
};

std::vector<Expected<RegionCode>> PluginBackend::compile(const partition::RegionRequest& request) const {
  std::vector<Graph> graphs;
  std::vector<const hr_graph*> views;
  std::vector<size_t> places;  // positions of the graphs among the regions
  std::vector<Expected<RegionCode>> codes(request.regions.size(), Refusal{HR_REASON_OP_UNSUPPORTED, ""});
  for (size_t i = 0; i < request.regions.size(); ++i) {
    // A plugin may trust that what has the name of a pattern is a match of it.
    const relay::Function function = partition::without_false_composites(request.regions[i].function, patterns_);
    Expected<Graph> graph = make_graph(*function, request.regions[i].name);
    if (!graph) {
      codes[i] = graph.refusal();
      continue;
    }
    graphs.push_back(std::move(graph.value()));
    views.push_back(graphs.back().get());
    places.push_back(i);
  }
  // Libraries of earlier versions were not told of requests without graphs.
  if (views.empty() && (!request.regions.empty() || table().abi.minor < 3)) return codes;
  check_options(request.options);
  const AttrList options(request.options);
  hr_compile_sink sink{.graphs = views,
                       .takes_constants = table().load_with_constants != nullptr,
                       .is_emitted = std::vector<bool>(views.size(), false)};
  const hr_compile_request asked{.abi = abi_of<hr_compile_request>(),
                                 .num_graphs = views.size(),
                                 .graphs = views.data(),
                                 .triple = request.machine.triple.c_str(),
                                 .cpu = request.machine.cpu.c_str(),
                                 .options = {.count = options.all().size(), .items = options.all().data()},
                                 .sink = &sink,
                                 .emit = &emit_blob,
                                 .refuse = &refuse_graph,
                                 .emit_with_constants = &emit_blob_with_constants};
  MessageRoom room;
  if (table().compile(table().self, &asked, room.view()) != 0)
    throw_user_error("the backend '{}' cannot compile: {}{}", plugin_->name, room.text(),
                     sink.rejected.empty() ? "" : fmt::format(" ({})", sink.rejected));
  const std::vector<Expected<RegionCode>> made = codes_of(sink);
  for (size_t i = 0; i < places.size(); ++i) codes[places[i]] = made[i];
  return codes;
}

// A refusal counts also where the graph was emitted. A graph without an answer is the plugin's mistake.
std::vector<Expected<RegionCode>> PluginBackend::codes_of(const hr_compile_sink& sink) const {
  std::string silent = "the backend neither compiled the region nor refused it";
  if (!sink.rejected.empty()) silent += fmt::format(" ({})", sink.rejected);
  std::vector<Expected<RegionCode>> codes(sink.graphs.size(), Refusal{HR_REASON_OP_UNSUPPORTED, silent});
  for (const hr_compile_sink::Blob& blob : sink.blobs) {
    std::vector<std::string> names;
    for (const uint64_t graph : blob.graphs)
      names.emplace_back(graph_api()->name(sink.graphs[static_cast<size_t>(graph)]));
    const runtime::Module module = make_plugin_module(plugin_, blob.saved, std::move(names));
    for (const uint64_t graph : blob.graphs) codes[static_cast<size_t>(graph)] = RegionCode{.module = module};
  }
  for (const auto& [graph, refusal] : sink.refused) codes[static_cast<size_t>(graph)] = refusal;
  return codes;
}

}  // namespace

std::string origin_of(const Plugin& plugin) { return fmt::format("that of the library '{}'", plugin.path); }

std::shared_ptr<const partition::Backend> make_backend(const PluginPtr& plugin) {
  return std::make_shared<PluginBackend>(plugin);
}

}  // namespace headrace::backends::plugin
