#include "load/artifact_module.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

#include "base/memory_file.h"
#include "base/write_all.h"
#include "executors/graph/graph_module.h"
#include "load/graph_nodes.h"
#include "tensor/device.h"

namespace headrace::load {
namespace {

runtime::Module make_executor_module(const std::shared_ptr<const Artifact>& artifact, const std::string& program,
                                     Device device, int32_t threads) {
  if (device.type != kDLCPU) throw_user_error("program '{}' runs on the CPU, not on {}", program, device.to_string());
  if (device.id != 0)
    throw_user_error("program '{}': there is one CPU, cpu(0), and no {}", program, device.to_string());
  return executors::make_graph_module(make_executor(artifact, program, {.threads = threads}));
}

class ArtifactBody : public runtime::ModuleBody {
 public:
  explicit ArtifactBody(std::shared_ptr<const Artifact> artifact) : artifact_(std::move(artifact)) {}
  std::string_view type_key() const override { return kArtifactModuleKind; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    const artifact::Manifest& manifest = artifact_->manifest();
    const artifact::Program* named = artifact::find_program(manifest, name);
    if (named == nullptr || !named->region.empty()) {  // a region's native form is not a program of the model
      return name == kGraphFunction ? make_graph_function({artifact_, &manifest}) : PackedFunc();
    }
    return PackedFunc([artifact = artifact_, name](Args args) -> Value {
      const bool fits =
          (args.size() == 1 || (args.size() == 2 && matches_item<int64_t>(args[1]))) && matches_item<Device>(args[0]);
      if (!fits)
        throw_user_error(
            "program '{0}' takes one device, and if you like how many threads it runs on: lib[\"{0}\"](headrace.cpu())",
            name);
      const int32_t threads = args.size() > 1 ? args.at<int32_t>(1) : 0;
      return make_executor_module(artifact, name, args.at<Device>(0), threads);
    });
  }

  bool saves_imports() const override { return true; }
  std::string save_to_binary(const runtime::Module& self) const override {
    const runtime::Library& library = *artifact_->library;
    if (!std::ranges::equal(self.imports(), artifact_->root.imports(), {}, &runtime::Module::object,
                            &runtime::Module::object))
      throw_user_error(
          "'{}' was loaded, and its file does not have the modules that it imports now; import them "
          "before the model is saved",
          library.name());
    if (library.manifest().side_file)
      throw_user_error("'{}' is not one piece: its weights lie in '{}'; copy the two files", library.name(),
                       library.manifest().side_file->name);
    return library.bytes().value_or_throw();
  }
  // The file may be the one that is mapped here, so it is replaced and never written to.
  void save_to_file(const std::string& path, const std::string& format, const runtime::Module& self) const override {
    const std::string name = path.substr(path.rfind('/') + 1);
    const bool is_so = name.find('.') == name.npos || name.find(".so") != name.npos;
    if (format.empty() ? !is_so : format != "so")
      throw_user_error("'{}' was loaded, and is saved as .so only; build the model again to save '{}'",
                       artifact_->library->name(), path);
    const std::string bytes = save_to_binary(self), temporary = fmt::format("{}.{}", path, ::getpid());
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777));
    if (file.number() >= 0 && write_all(file.number(), std::as_bytes(std::span(bytes))) &&
        ::rename(temporary.c_str(), path.c_str()) == 0)
      return;
    const int fault = errno;
    if (file.number() >= 0) ::unlink(temporary.c_str());
    throw_user_error("cannot write '{}': {}", path, std::generic_category().message(fault));
  }

 private:
  std::shared_ptr<const Artifact> artifact_;
};

}  // namespace

PackedFunc make_graph_function(std::shared_ptr<const artifact::Manifest> manifest) {
  const artifact::Program* program = artifact::find_program(*manifest, artifact::kDefaultProgram);
  if (program == nullptr) return {};
  return PackedFunc([manifest = std::move(manifest), program](Args) -> Value {
    return Value(graph_nodes(*program, manifest->weights.size()));
  });
}

runtime::Module make_artifact_module(std::shared_ptr<const Artifact> artifact) {
  const std::vector<runtime::Module> imports = artifact->root.imports();
  const runtime::Module module(std::make_unique<ArtifactBody>(std::move(artifact)));
  for (const runtime::Module& import : imports) module.Import(import);
  return module;
}

runtime::Module load_artifact_module(const std::string& path) {
  return make_artifact_module(open_artifact(path).value_or_throw());
}

runtime::Module load_artifact_binary(const std::string& bytes) {
  Descriptor descriptor =
      make_memory_file(fmt::format("a module of {} bytes", bytes.size()), std::as_bytes(std::span(bytes)))
          .value_or_throw();
  return make_artifact_module(open_artifact(std::move(descriptor), "the module's bytes").value_or_throw());
}

}  // namespace headrace::load
