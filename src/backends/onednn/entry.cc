// The backend's table of functions: all that the library exports. Exceptions end here.
#include <headrace/backend_abi.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "backends/onednn/cost.h"
#include "backends/onednn/fuse.h"
#include "backends/onednn/network.h"
#include "backends/onednn/primitives.h"
#include "backends/onednn/read_graph.h"

namespace headrace_onednn {

namespace {

#define HEADRACE_ONEDNN_TEXT_(x) #x
#define HEADRACE_ONEDNN_TEXT(x) HEADRACE_ONEDNN_TEXT_(x)
// The format of blobs; the costs, which README.md says when to raise; the library.
constexpr const char* kVersion = "2, costs 2, oneDNN " HEADRACE_ONEDNN_TEXT(
    DNNL_VERSION_MAJOR) "." HEADRACE_ONEDNN_TEXT(DNNL_VERSION_MINOR) "." HEADRACE_ONEDNN_TEXT(DNNL_VERSION_PATCH);

const hr_host* host = nullptr;

// A network that is ready to run, and the types of its tensors.
struct Region {
  std::vector<hr_tensor_type> inputs, outputs;

  Region(const std::shared_ptr<const Network>& network, int32_t num_workers, Arenas& arenas)
      : inputs(types_of(*network, network->inputs)),
        outputs(types_of(*network, network->outputs)),
        network_(network),
        arenas_(arenas),
        num_workers_(num_workers),
        primitives_(network, num_workers, arenas) {}

  // Returns those of one thread in a child that was forked from the process that made them.
  Primitives& primitives() {
    if (usable_threads(num_workers_) == num_workers_) return primitives_;
    std::call_once(once_, [&] { alone_ = std::make_unique<Primitives>(network_, 1, arenas_); });
    return *alone_;
  }

 private:
  static std::vector<hr_tensor_type> types_of(const Network& network, const std::vector<int32_t>& tensors) {
    std::vector<hr_tensor_type> types;
    for (const int32_t tensor : tensors) {
      const Dims& dims = network.tensors[static_cast<size_t>(tensor)].dims;
      types.push_back({.dtype = {kDLFloat, 32, 1}, .ndim = static_cast<int32_t>(dims.size()), .shape = dims.data()});
    }
    return types;
  }

  std::shared_ptr<const Network> network_;
  Arenas& arenas_;
  int32_t num_workers_;
  Primitives primitives_;
  std::once_flag once_;
  std::unique_ptr<Primitives> alone_;
};

// Networks of one blob, and the regions that were asked for.
struct Loaded {
  std::unordered_map<std::string, std::shared_ptr<const Network>> networks;  // by the names of their regions
  Arenas arenas;
  std::mutex mutex;
  std::map<std::pair<const Network*, int32_t>, std::unique_ptr<Region>> regions;  // by number of threads

  Region* find(const std::string& region, int32_t num_workers) {
    const auto found = networks.find(region);
    if (found == networks.end()) return nullptr;
    num_workers = usable_threads(num_workers);
    const std::scoped_lock lock(mutex);
    std::unique_ptr<Region>& made = regions[{found->second.get(), num_workers}];
    if (!made) made = std::make_unique<Region>(found->second, num_workers, arenas);
    return made.get();
  }
};

// Runs `body`, and writes what it throws.
template <typename F>
int32_t guarded(const hr_message* message, F&& body) {
  try {
    body();
    return 0;
  } catch (const dnnl::error& error) {
    hr_write_message(message, (std::string("oneDNN: ") + error.what()).c_str());
  } catch (const std::exception& error) {
    hr_write_message(message, error.what());
  } catch (...) {
    hr_write_message(message, "an unknown exception");
  }
  return -1;
}

void answer(hr_verdict* verdict, const std::optional<No>& no) {
  verdict->reason = no ? no->reason : HR_REASON_NONE;
  if (no) hr_write_message(&verdict->message, no->message.c_str());
}

template <typename F>
void judge(hr_verdict* verdict, F&& find) {
  verdict->reason = HR_REASON_BACKEND_FAILED;  // stays where it throws
  guarded(&verdict->message, [&] { answer(verdict, find()); });
}

void supports(void*, const hr_graph* graph, uint32_t node, hr_verdict* verdict) {
  judge(verdict, [&] { return find_fault(*host->graph, graph, node); });
}

void accepts(void*, const char* pattern, const hr_graph* match, hr_verdict* verdict) {
  judge(verdict, [&] { return find_fault_in_match(*host->graph, pattern, match); });
}

void refuse_options(const hr_options& options) {
  if (options.count > 0)
    throw std::runtime_error(std::string("it has no option '") + options.items[0].name + "', and no other");
}

int32_t compile(void*, const hr_compile_request* request, const hr_message* message) {
  return guarded(message, [&] {
    refuse_options(request->options);
    if (!HR_HAS_FIELD(hr_compile_request, request, emit_with_constants))
      throw std::runtime_error("this Headrace is too old for the backend: it keeps no constants beside a blob");
    std::vector<Network> networks;
    std::vector<uint64_t> graphs;
    for (uint64_t i = 0; i < request->num_graphs; ++i) {
      Network network;
      if (const std::optional<No> no = read_graph(*host->graph, request->graphs[i], network)) {
        request->refuse(request->sink, i, no->reason, no->message.c_str());
        continue;
      }
      fuse(network);
      networks.push_back(std::move(network));
      graphs.push_back(i);
    }
    if (networks.empty()) return;
    const Blob blob = save(networks);
    std::vector<const char*> ids;
    for (const std::string& id : blob.content_ids) ids.push_back(id.c_str());
    if (request->emit_with_constants(request->sink, blob.bytes.data(), blob.bytes.size(), graphs.data(), graphs.size(),
                                     ids.data(), ids.size()) != 0)
      throw std::runtime_error("Headrace does not take the blob of its regions");
  });
}

Constant constant_of(const DLTensor& tensor) {
  if (tensor.dtype.code != kDLFloat || tensor.dtype.bits != 32 || tensor.dtype.lanes != 1)
    throw std::runtime_error("one of its constants is not of float32; compile the model again");
  Constant constant{.data = reinterpret_cast<const float*>(static_cast<const char*>(tensor.data) + tensor.byte_offset),
                    .size = 1};
  for (int32_t i = 0; i < tensor.ndim; ++i) constant.size *= tensor.shape[i];
  return constant;
}

int32_t load_blob(void*, const void* blob, uint64_t size, const DLTensor* const* constants, uint64_t num_constants,
                  void** loaded, const hr_message* message) {
  return guarded(message, [&] {
    std::vector<Constant> given;
    for (uint64_t i = 0; i < num_constants; ++i) given.push_back(constant_of(*constants[i]));
    auto made = std::make_unique<Loaded>();
    for (Network& network : load(static_cast<const char*>(blob), size, given)) {
      const std::string name = network.name;
      made->networks.emplace(name, std::make_shared<const Network>(std::move(network)));
    }
    *loaded = made.release();
  });
}

void unload(void*, void* loaded) { delete static_cast<Loaded*>(loaded); }

int32_t find_region(void*, void* loaded, const char* region, int32_t num_workers, void** found,
                    const hr_message* message) {
  return guarded(message, [&] { *found = static_cast<Loaded*>(loaded)->find(region, num_workers); });
}

int32_t run(void*, void* region, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
  const hr_message message{env->message, env->message_size};
  return guarded(&message, [&] {
    Primitives& primitives = static_cast<Region*>(region)->primitives();
    if (num_args != primitives.num_args())
      throw std::runtime_error("it was called with another number of tensors than it has inputs and outputs");
    primitives.run(args);
  });
}

int32_t entry_types(void*, void* region, hr_entry_types* types, const hr_message*) {
  const auto& one = *static_cast<const Region*>(region);
  *types = {.num_inputs = static_cast<uint32_t>(one.inputs.size()),
            .num_outputs = static_cast<uint32_t>(one.outputs.size()),
            .inputs = one.inputs.data(),
            .outputs = one.outputs.data()};
  return 0;
}

// The number before the comma is that of the format of blobs, which hold no code of oneDNN.
int32_t accepts_version(void*, const char* recorded, const hr_message*) {
  const std::string_view own = kVersion, other = recorded;
  return own.substr(0, own.find(',')) == other.substr(0, other.find(',')) ? 0 : 1;
}

// Returns what `find` returns, and -1 for what it throws: the host's own estimate holds then.
template <typename F>
double estimate(F&& find) {
  double seconds = -1;
  guarded(nullptr, [&] { seconds = find(); });
  return seconds;
}

double cost(void*, const hr_cost_query* query) {
  return estimate([&] { return call_seconds(*host->graph, *query); });
}

double saved(void*, const hr_cost_query* query) {
  return std::max(estimate([&] { return fused_seconds(*host->graph, *query); }), 0.0);
}

double border(void*, const hr_border_query* query) {
  return std::max(estimate([&] { return border_seconds(*query); }), 0.0);
}

}  // namespace

}  // namespace headrace_onednn

HR_BACKEND_EXPORT int32_t headrace_backend_entry(const hr_host* host, hr_backend* backend, const hr_message*) {
  using namespace headrace_onednn;
  headrace_onednn::host = host;
  HR_FILL_ABI(hr_backend, backend);
  backend->name = "onednn";
  backend->version = kVersion;
  backend->patterns = kPatterns;
  backend->supports = &supports;
  backend->accepts = &accepts;
  backend->compile = &compile;
  if (HR_HAS_FIELD(hr_backend, backend, load_with_constants)) backend->load_with_constants = &load_blob;
  backend->unload = &unload;
  backend->find = &find_region;
  backend->run = &run;
  if (HR_HAS_FIELD(hr_backend, backend, entry_types)) backend->entry_types = &entry_types;
  if (HR_HAS_FIELD(hr_backend, backend, cost)) backend->cost = &cost;
  if (HR_HAS_FIELD(hr_backend, backend, saved)) backend->saved = &saved;
  if (HR_HAS_FIELD(hr_backend, backend, border)) backend->border = &border;
  if (HR_HAS_FIELD(hr_backend, backend, accepts_version)) backend->accepts_version = &accepts_version;
  return 0;
}
