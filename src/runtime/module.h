// Module: functions that belong together, from one code generator or loader; modules import others and form a tree.
#pragma once

#include <headrace/kernel_abi.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "object/function.h"
#include "tensor/ndarray.h"

namespace headrace::runtime {

class Module;

// A function of a module as a step of a program calls it: a kernel (headrace/kernel_abi.h) with a context and the
// number of its tensors, inputs before outputs. It runs on the threads of `env`.
struct ModuleKernel {
  int32_t (*run)(void* self, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) = nullptr;
  void* self = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

// The type of one tensor of a function that is ready to run.
struct EntryTensor {
  DataType dtype;
  Shape shape;  // a negative size: the function takes any

  // Returns the type as programs show theirs: "float32 2x3", with a '?' for any size.
  std::string to_string() const;
};

// Says what a function that is ready to run computes, for callers that compare it with what they were compiled for.
struct EntryTypes {
  std::vector<EntryTensor> inputs, outputs;
};

// A module as an artifact holds it: bytes, and beside them the tensors that the file stores once for all that have
// them.
struct SavedModule {
  std::string bytes;
  std::vector<NDArray> constants = {};  // dense
  std::string version = {};             // the recorded one of the backend that made it; empty: not known
};

// The behaviour of one kind of module. Implementations are immutable after construction or lock themselves: threads
// share them.
class ModuleBody {
 public:
  virtual ~ModuleBody() = default;
  // Returns the kind, which is also the key of its loader: "graph_executor", "dnnl" ...
  virtual std::string_view type_key() const = 0;
  // Returns the function of that name, or a null function. `self` is the module this body belongs to: a function that
  // needs the body later captures it, and so keeps it alive.
  virtual PackedFunc get_function(const std::string& name, const Module& self) = 0;
  // Returns whether the module is known to have a function of that name, without making it ready to run. Default:
  // false, only get_function tells.
  virtual bool declares(const std::string&) const { return false; }
  // Returns the function of that name as a kernel for `num_workers` threads, which lives as long as the module.
  // Default: nothing, a program calls the function instead. UserError: there is one, and it cannot run here.
  virtual ModuleKernel get_kernel(const std::string&, int32_t) { return {}; }
  // Returns the types that the loaded code of that function has by its own word; nothing where it does not say.
  // Default: nothing. UserError: what it says is not a list of types.
  virtual std::optional<EntryTypes> entry_types(const std::string&) { return std::nullopt; }
  // Returns the bytes that the loader of this kind makes `self` from again. Default: UserError, the kind cannot be
  // saved.
  virtual std::string save_to_binary(const Module& self) const;
  // Returns what an artifact holds of `self`, for the same loader, which gets the constants beside the bytes. Default:
  // the bytes of save_to_binary, and no constants.
  virtual SavedModule save_apart(const Module& self) const { return {.bytes = save_to_binary(self)}; }
  // Returns whether those bytes include the imports. Otherwise the code that saves the module saves its imports, too.
  virtual bool saves_imports() const { return false; }
  // Writes `self`, its imports included, to a file in a format that the kind knows. Default: UserError.
  virtual void save_to_file(const std::string& path, const std::string& format, const Module& self) const;
  // Returns the program's text in a format that the kind knows; empty when it has none.
  virtual std::string get_source(const std::string& format) const;
};

struct ModuleObj : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "runtime.Module";
  static constexpr int32_t static_type_index = type_index::kModule;
  static constexpr bool is_final = true;
  std::unique_ptr<ModuleBody> body;
  std::vector<Ref<ModuleObj>> imports;  // Module::Import and Module::imports guard it
};

// A shared reference to a module. The capitalised names are those that Relay users know.
class Module {
 public:
  Module() = default;
  explicit Module(std::unique_ptr<ModuleBody> body);
  explicit Module(Ref<ModuleObj> object) : object_(std::move(object)) {}
  explicit operator bool() const { return object_.defined(); }
  const Ref<ModuleObj>& object() const { return object_; }
  ModuleBody& body() const { return *object_->body; }

  std::string_view type_key() const { return body().type_key(); }
  // Returns the function of that name in this module or, with `query_imports`, in the first import that has it, depth
  // first. A null function when there is none.
  PackedFunc GetFunction(const std::string& name, bool query_imports = false) const;
  // Returns a function that code of this module calls: from its imports, else a global function of the process.
  // UserError when neither has it.
  PackedFunc GetFuncFromEnv(const std::string& name) const;
  // Returns the types of that function by the word of this module or of the first import that says them, depth first.
  std::optional<EntryTypes> entry_types(const std::string& name) const;
  bool ImplementsFunction(const std::string& name, bool query_imports = false) const;
  // Adds an import. UserError when that would make a cycle. Threads may import and read imports at the same time.
  void Import(const Module& other) const;
  std::vector<Module> imports() const;
  std::string SaveToBinary() const { return body().save_to_binary(*this); }
  SavedModule save_apart() const { return body().save_apart(*this); }
  // Writes the module to a file; an empty `format` means the path's ending.
  void SaveToFile(const std::string& path, const std::string& format) const {
    body().save_to_file(path, format, *this);
  }
  std::string GetSource(const std::string& format = "") const { return body().get_source(format); }

 private:
  Ref<ModuleObj> object_;
};

// Makes a module of one kind from the bytes of save_to_binary. UserError when the bytes are not of that kind.
using ModuleLoader = std::function<Module(const std::string& bytes)>;
// Makes one from what save_apart gave; without constants, from the bytes of save_to_binary too.
using ApartLoader = std::function<Module(const SavedModule& saved)>;

// The prefix of the names of loaders; the kind follows.
inline constexpr std::string_view kLoadBinaryPrefix = "runtime.module.loadbinary_";
// Makes a loader known, as the global function of that name; a later one of the same key replaces it.
void register_module_loader(const std::string& key, const ModuleLoader& loader);
void register_apart_loader(const std::string& key, const ApartLoader& loader);
// Throws UserError if a kind's loader cannot read what the recorded version of the backend saved.
using VersionCheck = std::function<void(const std::string& recorded)>;
// Makes a kind's check known, which runs before the loader where a version is recorded; a later one of the same key
// replaces it. Without a check every version is loaded.
void register_version_check(const std::string& key, const VersionCheck& check);
// Throws the UserError of a check. `why` is the backend's own reason, and may be empty.
[[noreturn]] void refuse_version(const std::string& backend, const std::string& recorded, const std::string& version,
                                 const std::string& why);
// Makes a module from what was saved; a null module when no loader has that key. The loader is called with the bytes
// and, where there are constants, with an array of them. UserError when the check of versions refuses the recorded one,
// when the loader returns something else, or asks for these bytes again.
Module load_from_binary(const std::string& key, const SavedModule& saved);
inline Module load_from_binary(const std::string& key, const std::string& bytes) {
  return load_from_binary(key, SavedModule{.bytes = bytes});
}

}  // namespace headrace::runtime

namespace headrace {

template <>
struct ValueTraits<runtime::Module> {
  static Value to(const runtime::Module& module) { return Value(module.object()); }
  static bool matches(const RawValue& raw) {
    return raw.type_index == type_index::kModule || raw.type_index == type_index::kNone;
  }
  static runtime::Module from(const RawValue& raw) {
    return runtime::Module(ValueTraits<Ref<runtime::ModuleObj>>::from(raw));
  }
  static std::string name() { return "Module"; }
};

}  // namespace headrace
