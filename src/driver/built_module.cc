#include "driver/built_module.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "artifact/trailer.h"
#include "base/mapped_file.h"
#include "base/memory_file.h"
#include "driver/module_format.h"
#include "driver/output_file.h"
#include "driver/save_modules.h"
#include "load/artifact_module.h"
#include "runtime/library.h"

namespace headrace::driver {

namespace {

constexpr const char* kCompiledModel = "the compiled model";

class BuiltBody : public runtime::ModuleBody {
 public:
  BuiltBody(runtime::Module programs, std::shared_ptr<const CompiledCode> code, int64_t weights_limit_bytes)
      : programs_(std::move(programs)), code_(std::move(code)), weights_limit_bytes_(weights_limit_bytes) {}

  std::string_view type_key() const override { return programs_.type_key(); }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    return programs_.GetFunction(name);
  }
  bool saves_imports() const override { return true; }

  std::string save_to_binary(const runtime::Module& self) const override {
    const Descriptor file = make_memory_file(kCompiledModel).value_or_throw();
    const LinkedArtifact linked = link_artifact(code_with_imports(self), file.number(), kCompiledModel);
    std::string bytes(static_cast<size_t>(linked.nbytes), '\0');
    if (!artifact::read_exactly(file.number(), 0, {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()}))
      throw_user_error("the compiled model cannot be read back: {}", std::strerror(errno));
    return bytes;
  }

  void save_to_file(const std::string& path, const std::string& format, const runtime::Module& self) const override {
    const ModuleFormat chosen = module_format(path, format);
    const CompiledCode code = is_text(chosen) ? *code_ : code_with_imports(self);
    OutputFile output(path, file_kind(chosen));
    write_module(code, chosen, output, weights_limit_bytes_, {});
  }

  std::string get_source(const std::string& format) const override {
    return kernel_text(*code_, source_format(format));
  }

 private:
  // Reads the imports again, because modules may have been imported since the compile.
  CompiledCode code_with_imports(const runtime::Module& self) const {
    CompiledCode code = *code_;
    code.module_roots.clear();
    for (const runtime::Module& import : self.imports()) {
      const auto is_it = [&](const runtime::Module& source) { return source.object() == import.object(); };
      if (std::none_of(code.sources.begin(), code.sources.end(), is_it)) code.module_roots.push_back(import);
    }
    save_external_modules(code);
    return code;
  }

  runtime::Module programs_;
  std::shared_ptr<const CompiledCode> code_;
  int64_t weights_limit_bytes_;
};

// A module for an artifact that this machine's CPU cannot run. The functions of its programs throw the reason when they
// are called; the function that describes the graph needs no machine.
class ElsewhereBody : public runtime::ModuleBody {
 public:
  explicit ElsewhereBody(artifact::Manifest manifest)
      : manifest_(std::make_shared<const artifact::Manifest>(std::move(manifest))) {}

  std::string_view type_key() const override { return load::kArtifactModuleKind; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    const artifact::Program* program = artifact::find_program(*manifest_, name);
    if (program == nullptr) return name == load::kGraphFunction ? load::make_graph_function(manifest_) : PackedFunc();
    const auto refusal = runtime::cpu_refusal(*program, kCompiledModel);
    if (!refusal) return {};
    return PackedFunc([refusal = *refusal](Args) -> Value { throw_refusal(refusal); });
  }

 private:
  std::shared_ptr<const artifact::Manifest> manifest_;
};

// Returns whether this machine's CPU can run none of the programs.
bool runs_elsewhere(const artifact::Manifest& manifest) {
  return std::ranges::all_of(manifest.programs, [](const artifact::Program& program) {
    return runtime::cpu_refusal(program, kCompiledModel).has_value();
  });
}

// Returns views of the weights in the open artifact, so that memory holds them only once.
std::vector<NDArray> weights_in(const std::shared_ptr<const load::Artifact>& artifact) {
  std::vector<NDArray> tensors;
  for (size_t i = 0; i < artifact->manifest().weights.size(); ++i)
    tensors.push_back(load::view_weight(artifact->library, i));
  return tensors;
}

}  // namespace

runtime::Module build_module(const Model& model, const CompileOptions& options) {
  const auto code = std::make_shared<CompiledCode>();
  CompiledModel compiled = compile_to_memory(model, options, code.get());
  const auto with_imports = [&](runtime::Module programs, const std::vector<runtime::Module>& imports) {
    const runtime::Module built(std::make_unique<BuiltBody>(std::move(programs), code, options.weights_limit_bytes));
    for (const runtime::Module& import : imports) built.Import(import);
    for (const runtime::Module& source : code->sources) built.Import(source);
    return built;
  };
  if (runs_elsewhere(compiled.report.manifest))
    return with_imports(runtime::Module(std::make_unique<ElsewhereBody>(compiled.report.manifest)), code->module_roots);
  const std::shared_ptr<const load::Artifact> artifact =
      load::open_artifact(std::move(compiled.descriptor), kCompiledModel).value_or_throw();
  code->weights.replace_tensors(weights_in(artifact));
  for (size_t i = 0; i < code->regions.size(); ++i) {  // the file's own modules take the place of those it was made of
    if (const int32_t row = code->regions[i].module; row >= 0)
      code->region_modules[i] = artifact->modules[static_cast<size_t>(row)].value_or_throw();
  }
  runtime::Module programs = load::make_artifact_module(artifact);
  const std::vector<runtime::Module> imports = programs.imports();
  return with_imports(std::move(programs), imports);
}

runtime::Module load_object(const std::string& path) {
  const auto file = MappedFile::open(path, "object file");
  const codegen::ObjectCode object{
      path, std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size())};
  artifact::verify_trailer(std::as_bytes(std::span(object.bytes)), path).value_or_throw();
  const codegen::NativeCompiler compiler = codegen::NativeCompiler::load();
  const std::string linked = compiler.link_object(object, compiler.host_target());
  Descriptor descriptor =
      make_memory_file(fmt::format("'{}'", path), std::as_bytes(std::span(linked))).value_or_throw();
  artifact::append_trailer(descriptor.number(), path);
  return load::make_artifact_module(load::open_artifact(std::move(descriptor), path).value_or_throw());
}

}  // namespace headrace::driver
