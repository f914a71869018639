#include "python_module.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "ir/type.h"
#include "runtime/loader_finder.h"

namespace headrace::python {

namespace {

using runtime::Module;

// The saved bytes: the magic, then numbers of eight bytes, little-endian as all machines that Headrace runs on:
//   number of regions, for each: length of the name, the name, number of inputs; length of the blob, the blob.
constexpr std::string_view kMagic = "HRPYMOD1";

void write_number(std::string& bytes, uint64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void write_text(std::string& bytes, const std::string& text) {
  write_number(bytes, text.size());
  bytes += text;
}

std::string to_bytes(const PythonBlob& blob) {
  std::string bytes(kMagic);
  write_number(bytes, blob.regions.size());
  for (const RegionEntry& region : blob.regions) {
    write_text(bytes, region.name);
    write_number(bytes, region.num_inputs);
  }
  write_text(bytes, blob.blob);
  return bytes;
}

class Reader {
 public:
  Reader(const std::string& backend, std::string_view bytes) : backend_(backend), left_(bytes) {}

  PythonBlob read() {
    if (take(kMagic.size()) != kMagic) refuse("they do not begin as such a module");
    PythonBlob blob;
    for (uint64_t count = number(); count > 0; --count) {
      RegionEntry region{.name = std::string(text())};
      const uint64_t num_inputs = number();
      if (num_inputs > UINT32_MAX) refuse("a number of inputs is out of range");
      region.num_inputs = static_cast<uint32_t>(num_inputs);
      blob.regions.push_back(std::move(region));
    }
    blob.blob = text();
    if (!left_.empty()) refuse("there are bytes after their end");
    return blob;
  }

 private:
  [[noreturn]] void refuse(const char* why) const {
    throw_user_error("the bytes are not a module of the backend '{}': {}; compile the model again", backend_, why);
  }
  std::string_view take(uint64_t size) {
    if (size > left_.size()) refuse("they end too early");
    const std::string_view taken = left_.substr(0, static_cast<size_t>(size));
    left_.remove_prefix(static_cast<size_t>(size));
    return taken;
  }
  uint64_t number() {
    uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text() { return take(number()); }

  const std::string& backend_;
  std::string_view left_;
};

class PythonModule : public runtime::ModuleBody {
 public:
  PythonModule(const std::string& backend, PackedFunc load, PythonBlob blob)
      : kind_(python_module_kind(backend)), load_(std::move(load)), blob_(std::move(blob)) {}

  std::string_view type_key() const override { return kind_; }
  bool declares(const std::string& name) const override { return entry(name) != nullptr; }
  std::string save_to_binary(const Module&) const override { return to_bytes(blob_); }

  PackedFunc get_function(const std::string& name, const Module&) override {
    const RegionEntry* region = entry(name);
    if (region == nullptr) return {};
    const PackedFunc find = loaded().find;
    return as_user_error([&] { return find(region->name, static_cast<int64_t>(region->num_inputs)); }).as<PackedFunc>();
  }

  std::optional<runtime::EntryTypes> entry_types(const std::string& name) override {
    const PackedFunc types = entry(name) == nullptr ? PackedFunc() : loaded().types;
    if (!types) return std::nullopt;
    const Value said = as_user_error([&] { return types(name); });
    if (said.is_none()) return std::nullopt;
    const auto lists = said.as<Array<Value>>();
    return runtime::EntryTypes{.inputs = tensors_of(lists[0]), .outputs = tensors_of(lists[1])};
  }

  // Loads without the lock: loading waits for Python's, and another thread may have that one and wait for this one.
  struct Functions {
    PackedFunc find, types;
  };
  Functions loaded() {
    {
      const std::scoped_lock lock(mutex_);
      if (loaded_.find) return loaded_;
    }
    const auto loaded = as_user_error([&] { return load_(Bytes{blob_.blob}); }).as<Array<Value>>();
    const std::scoped_lock lock(mutex_);
    if (!loaded_.find) {
      loaded_ = {.find = loaded[0].as<PackedFunc>(),
                 .types = loaded[1].is_none() ? PackedFunc() : loaded[1].as<PackedFunc>()};
    }
    return loaded_;
  }

 private:
  static std::vector<runtime::EntryTensor> tensors_of(const Value& types) {
    std::vector<runtime::EntryTensor> tensors;
    for (const TensorType& type : types.as<Array<TensorType>>()) {
      runtime::EntryTensor& tensor = tensors.emplace_back(runtime::EntryTensor{.dtype = type->dtype, .shape = {}});
      for (const PrimExpr& size : type->shape) {
        const auto* number = size.as<IntImmNode>();
        tensor.shape.push_back(number == nullptr ? -1 : number->value);
      }
    }
    return tensors;
  }

  const RegionEntry* entry(const std::string& name) const {
    const auto found =
        std::find_if(blob_.regions.begin(), blob_.regions.end(), [&](const auto& one) { return one.name == name; });
    return found == blob_.regions.end() ? nullptr : &*found;
  }

  std::string kind_;
  PackedFunc load_;
  PythonBlob blob_;
  std::mutex mutex_;
  Functions loaded_;
};

}  // namespace

std::string python_module_kind(const std::string& backend) {
  return fmt::format("{}{}", runtime::kPythonKindPrefix, backend);
}

Module make_python_module(const std::string& backend, const PackedFunc& load, PythonBlob blob) {
  return Module(std::make_unique<PythonModule>(backend, load, std::move(blob)));
}

Module load_python_module(const std::string& backend, const PackedFunc& load, const std::string& bytes) {
  auto body = std::make_unique<PythonModule>(backend, load, Reader(backend, bytes).read());
  body->loaded();
  return Module(std::move(body));
}

}  // namespace headrace::python
