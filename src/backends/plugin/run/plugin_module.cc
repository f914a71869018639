#include "backends/plugin/run/plugin_module.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "artifact/tensor_extent.h"
#include "backends/plugin/run/message_room.h"
#include "object/json.h"
#include "tensor/ndarray.h"
#include "tensor/strides.h"

namespace headrace::backends::plugin {

namespace {

using runtime::Module;
using runtime::ModuleKernel;
using runtime::SavedModule;

// The bytes of a module with its constants begin with this; the rest is a value as JSON.
constexpr std::string_view kWholePrefix = "headrace plugin, constants within\n";
constexpr const char* kBlob = "blob";
constexpr const char* kConstants = "constants";
constexpr uint32_t kMostEntryTensors = 1 << 20;  // a region with more is not read

// Returns one string for a blob and its constants; for a blob without any, mostly the blob itself.
std::string whole_of(const SavedModule& saved) {
  if (saved.constants.empty() && !saved.bytes.starts_with(kWholePrefix)) return saved.bytes;
  return std::string(kWholePrefix) +
         save_json(Value(Map<std::string, Value>{{kBlob, Value(Bytes{saved.bytes})},
                                                 {kConstants, Value(Array<NDArray>(saved.constants))}}));
}

// Does the opposite of whole_of to bytes whose constants are within.
SavedModule parts_of(const SavedModule& saved) {
  if (!saved.constants.empty() || !saved.bytes.starts_with(kWholePrefix)) return saved;
  using Fields = Map<std::string, Value>;
  const Value read = load_json(saved.bytes.substr(kWholePrefix.size()));
  const bool is_map = !read.is_none() && read.is<Fields>();
  const auto get = [&](const char* key) { return is_map ? read.as<Fields>().get(key) : std::nullopt; };
  const auto blob = get(kBlob), constants = get(kConstants);
  if (!blob || !blob->is<Bytes>() || !constants || constants->is_none() || !constants->is<Array<NDArray>>())
    throw_user_error("the bytes are not those of a module of a plugin");
  return {.bytes = blob->as<Bytes>().data, .constants = constants->as<Array<NDArray>>().to_vector()};
}

// A blob that is loaded.
class Loaded {
 public:
  Loaded(PluginPtr plugin, SavedModule blob) : plugin_(std::move(plugin)), blob_(std::move(blob)) {
    MessageRoom room;
    if (load(room.view()) != 0)
      throw_user_error("the backend '{}' does not load its part: {}", plugin_->name, room.text());
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded() {
    if (plugin_->table.unload != nullptr) plugin_->table.unload(plugin_->table.self, loaded_);
  }

  const Plugin& plugin() const { return *plugin_; }
  // Returns null where there is no region of that name. Asks the plugin once for each name and number of workers, since
  // what it returns lives as long as what it loaded.
  void* find(const std::string& region, int32_t num_workers) const {
    const std::scoped_lock lock(mutex_);
    if (const auto known = found_.find({region, num_workers}); known != found_.end()) return known->second;
    MessageRoom room;
    void* found = nullptr;
    if (plugin_->table.find(plugin_->table.self, loaded_, region.c_str(), num_workers, &found, room.view()) != 0)
      throw_user_error("the backend '{}' cannot run its region '{}' here: {}", plugin_->name, region, room.text());
    if (found != nullptr) found_.emplace(std::pair(region, num_workers), found);
    return found;
  }
  // Returns what the plugin says of a region that it found.
  std::optional<runtime::EntryTypes> entry_types(const std::string& region, void* found) const {
    const hr_backend& table = plugin_->table;
    if (table.entry_types == nullptr) return std::nullopt;
    MessageRoom room;
    hr_entry_types said{};
    if (table.entry_types(table.self, found, &said, room.view()) != 0)
      throw_user_error("the backend '{}' does not say the types of its region '{}': {}", plugin_->name, region,
                       room.text());
    if (said.num_outputs == 0) return std::nullopt;
    return runtime::EntryTypes{.inputs = tensors_of(region, said.inputs, said.num_inputs),
                               .outputs = tensors_of(region, said.outputs, said.num_outputs)};
  }

 private:
  std::vector<runtime::EntryTensor> tensors_of(const std::string& region, const hr_tensor_type* types,
                                               uint32_t count) const {
    const auto fail = [&](const std::string& what) {
      throw_user_error("the backend '{}' says types of its region '{}' that are none: {}", plugin_->name, region, what);
    };
    if (count > kMostEntryTensors) fail(fmt::format("{} tensors are above {}", count, kMostEntryTensors));
    std::vector<runtime::EntryTensor> tensors;
    for (uint32_t i = 0; i < count; ++i) {
      if (types == nullptr || types[i].ndim < 0 || (types[i].ndim > 0 && types[i].shape == nullptr))
        fail("one has no shape");
      if (types[i].ndim > static_cast<int32_t>(artifact::kMaxRank))
        fail(fmt::format("one has {} dimensions, more than {}", types[i].ndim, artifact::kMaxRank));
      tensors.push_back(
          {.dtype = DataType(types[i].dtype), .shape = Shape(types[i].shape, types[i].shape + types[i].ndim)});
    }
    return tensors;
  }

  int32_t load(const hr_message* message) {
    const hr_backend& table = plugin_->table;
    if (table.load_with_constants == nullptr) {
      if (!blob_.constants.empty())
        throw_user_error("the backend '{}' does not load its part: it is an older one, which takes no constants",
                         plugin_->name);
      return table.load(table.self, blob_.bytes.data(), blob_.bytes.size(), &loaded_, message);
    }
    for (const NDArray& constant : blob_.constants) constants_.push_back(&constant.tensor());
    return table.load_with_constants(table.self, blob_.bytes.data(), blob_.bytes.size(), constants_.data(),
                                     constants_.size(), &loaded_, message);
  }

  PluginPtr plugin_;
  SavedModule blob_;  // a function may outlive the module, and the plugin reads the bytes and the constants
  std::vector<const DLTensor*> constants_;  // those of the blob
  void* loaded_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::string, int32_t>, void*> found_;
};

// One region as a kernel.
struct RegionKernel {
  const Loaded* owner;
  void* region;

  static int32_t run(void* self, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
    const auto& kernel = *static_cast<const RegionKernel*>(self);
    const hr_backend& table = kernel.owner->plugin().table;
    return table.run(table.self, kernel.region, env, args, num_args);
  }
};

int32_t run_serially(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  return body(env, closure, 0, count);
}

// Calls a kernel with the arguments of a function.
class FunctionCall {
 public:
  // UserError for arguments that are not tensors of these types, where they are known: inputs, then outputs.
  FunctionCall(Args args, const std::optional<runtime::EntryTypes>& types) {
    const auto count = static_cast<size_t>(args.size());
    tensors_.reserve(count);
    strides_.reserve(count);
    for (int32_t i = 0; i < args.size(); ++i) add(args, i);
    const size_t num_inputs = types ? types->inputs.size() : count - std::min<size_t>(count, 1);
    for (size_t i = num_inputs; i < count; ++i) check_writable(args, static_cast<int32_t>(i));
    if (types) check(*types);
  }

  void run(const RegionKernel& kernel) {
    std::vector<DLTensor*> pointers;
    for (DLTensor& tensor : tensors_) pointers.push_back(&tensor);
    MessageRoom room;
    hr_kernel_env env{};
    env.size = sizeof env;
    env.version = HR_KERNEL_ABI_VERSION;
    env.parallel_for = &run_serially;
    env.num_workers = 1;
    env.message = room.view()->data;
    env.message_size = room.view()->size;
    if (RegionKernel::run(const_cast<RegionKernel*>(&kernel), &env, pointers.data(),
                          static_cast<int32_t>(pointers.size())) != 0)
      throw_user_error("the backend '{}' failed: {}", kernel.owner->plugin().name, room.text());
  }

 private:
  void check(const runtime::EntryTypes& types) const {
    std::vector<runtime::EntryTensor> all = types.inputs;
    all.insert(all.end(), types.outputs.begin(), types.outputs.end());
    if (tensors_.size() != all.size())
      throw_user_error("the region takes {} tensors, its inputs and its outputs, and got {}", all.size(),
                       tensors_.size());
    for (size_t i = 0; i < all.size(); ++i) {
      const DLTensor& given = tensors_[i];
      const bool has_shape = std::equal(all[i].shape.begin(), all[i].shape.end(), given.shape, given.shape + given.ndim,
                                        [](int64_t wanted, int64_t size) { return wanted < 0 || wanted == size; });
      if (has_shape && DataType(given.dtype) == all[i].dtype) continue;
      throw_user_error("argument {} is a tensor of {} and shape ({}); the region takes {} of shape ({})", i,
                       DataType(given.dtype).to_string(), fmt::join(given.shape, given.shape + given.ndim, ", "),
                       all[i].dtype.to_string(), fmt::join(all[i].shape, ", "));
    }
  }

  static void check_writable(Args args, int32_t index) {
    if (args[index].type_index != type_index::kDLTensorPtr && args.at<Ref<NDArrayObj>>(index)->read_only)
      throw_user_error("argument {}: the tensor is read-only, and an output is written into it", index);
  }

  void add(Args args, int32_t index) {
    const RawValue& raw = args[index];
    const bool is_pointer = raw.type_index == type_index::kDLTensorPtr;
    if (!is_pointer && !matches_item<NDArray>(raw)) throw_user_error("argument {} is not a tensor", index);
    DLTensor tensor =
        is_pointer ? *static_cast<const DLTensor*>(raw.v.v_ptr) : ValueTraits<NDArray>::from(raw).tensor();
    const std::span<const int64_t> shape(tensor.shape, static_cast<size_t>(tensor.ndim));
    const bool is_contiguous = tensor.strides == nullptr || is_dense(shape, {tensor.strides, shape.size()});
    if (tensor.device.device_type != kDLCPU || !is_contiguous)
      throw_user_error("argument {} is not a contiguous tensor on the CPU", index);
    tensor.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
    tensor.byte_offset = 0;
    strides_.push_back(dense_strides(shape));
    tensor.strides = strides_.back().data();
    tensors_.push_back(tensor);
  }

  std::vector<Shape> strides_;
  std::vector<DLTensor> tensors_;
};

class PluginBody : public runtime::ModuleBody {
 public:
  PluginBody(PluginPtr plugin, SavedModule blob, std::vector<std::string> regions)
      : plugin_(std::move(plugin)),
        blob_(std::move(blob)),
        regions_(std::move(regions)),
        kind_(module_kind(plugin_->name)) {}

  std::string_view type_key() const override { return kind_; }

  bool declares(const std::string& name) const override {
    return std::find(regions_.begin(), regions_.end(), name) != regions_.end();
  }

  PackedFunc get_function(const std::string& name, const Module&) override {
    const std::shared_ptr<const Loaded> owner = loaded();
    void* region = owner->find(name, 1);
    if (region == nullptr) return {};
    return PackedFunc(
        [owner, kernel = RegionKernel{owner.get(), region}, types = owner->entry_types(name, region)](Args args) {
          FunctionCall(args, types).run(kernel);
          const int32_t last = args.size() - 1;
          return last >= 0 && matches_item<NDArray>(args[last]) ? Value(args.at<NDArray>(last)) : Value();
        });
  }

  ModuleKernel get_kernel(const std::string& name, int32_t num_workers) override {
    const std::shared_ptr<const Loaded> owner = loaded();
    void* region = owner->find(name, num_workers);
    if (region == nullptr) return {};
    const std::scoped_lock lock(mutex_);
    found_[name] = region;
    auto& kernel = kernels_[region];
    if (!kernel) kernel = std::make_unique<RegionKernel>(RegionKernel{owner.get(), region});
    return {.run = &RegionKernel::run, .self = kernel.get()};
  }

  // A region is made ready to run once: an executor asks for its kernel before.
  std::optional<runtime::EntryTypes> entry_types(const std::string& name) override {
    const std::shared_ptr<const Loaded> owner = loaded();
    void* region = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      if (const auto known = found_.find(name); known != found_.end()) region = known->second;
    }
    if (region == nullptr) region = owner->find(name, 1);
    return region == nullptr ? std::nullopt : owner->entry_types(name, region);
  }

  std::string save_to_binary(const Module&) const override { return whole_of(blob_); }

  // A blob without constants may begin as those do that have them within.
  SavedModule save_apart(const Module& self) const override {
    return blob_.constants.empty() ? SavedModule{.bytes = save_to_binary(self)} : blob_;
  }

  std::shared_ptr<const Loaded> loaded() {
    const std::scoped_lock lock(mutex_);
    if (!loaded_) loaded_ = std::make_shared<const Loaded>(plugin_, blob_);
    return loaded_;
  }

 private:
  PluginPtr plugin_;
  SavedModule blob_;
  std::vector<std::string> regions_;
  std::string kind_;
  std::mutex mutex_;
  std::shared_ptr<const Loaded> loaded_;
  std::map<void*, std::unique_ptr<RegionKernel>> kernels_;  // by region
  std::map<std::string, void*> found_;                      // regions that kernels were made of
};

}  // namespace

Module load_plugin_module(const PluginPtr& plugin, const SavedModule& saved) {
  auto body = std::make_unique<PluginBody>(plugin, parts_of(saved), std::vector<std::string>());
  body->loaded();
  return Module(std::move(body));
}

Module make_plugin_module(const PluginPtr& plugin, SavedModule blob, std::vector<std::string> regions) {
  return Module(std::make_unique<PluginBody>(plugin, std::move(blob), std::move(regions)));
}

void register_loader(const PluginPtr& plugin) {
  runtime::register_apart_loader(module_kind(plugin->name), [plugin](const runtime::SavedModule& saved) {
    return load_plugin_module(plugin, saved);
  });
  runtime::register_version_check(module_kind(plugin->name),
                                  [plugin](const std::string& recorded) { check_blob_version(*plugin, recorded); });
}

}  // namespace headrace::backends::plugin
