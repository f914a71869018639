#include "driver/built_module.h"

#include <fcntl.h>
#include <sys/sendfile.h>

#include <cerrno>
#include <cstring>

#include "driver/output_file.h"
#include "load/artifact_module.h"

namespace headrace::driver {

namespace {

Descriptor duplicate(const Descriptor& descriptor) {
  Descriptor copy(fcntl(descriptor.number(), F_DUPFD_CLOEXEC, 0));
  if (copy.number() < 0) throw_user_error("the compiled model cannot be opened again: {}", std::strerror(errno));
  return copy;
}

class BuiltBody : public runtime::ModuleBody {
 public:
  // `code` null: the file holds the weights, and is what is saved.
  BuiltBody(runtime::Module programs, Descriptor file, int64_t size_bytes, std::shared_ptr<const CompiledCode> code,
            int64_t weights_limit_bytes)
      : programs_(std::move(programs)),
        file_(std::move(file)),
        size_bytes_(size_bytes),
        code_(std::move(code)),
        weights_limit_bytes_(weights_limit_bytes) {}
  std::string_view type_key() const override { return programs_.type_key(); }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    return programs_.GetFunction(name);
  }
  void save_to_file(const std::string& path, const std::string& format) const override {
    if (!format.empty() && format != "so")
      throw_user_error("'{}': an artifact is saved as so, not as {}", path, format);
    OutputFile output(path);
    if (code_ != nullptr) {
      link_artifact(*code_, output, weights_limit_bytes_, {});
      return;
    }
    off_t offset = 0;
    while (offset < size_bytes_) {
      const auto left = static_cast<size_t>(size_bytes_ - offset);
      const ssize_t sent = sendfile(output.descriptor(), file_.number(), &offset, left);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) throw_user_error("'{}' cannot be written: {}", path, std::strerror(errno));
    }
    output.commit();
  }

 private:
  runtime::Module programs_;
  Descriptor file_;
  int64_t size_bytes_;
  std::shared_ptr<const CompiledCode> code_;
  int64_t weights_limit_bytes_;
};

}  // namespace

runtime::Module build_module(const Model& model, const CompileOptions& options) {
  CompiledModel compiled = compile_to_memory(model, options);
  Descriptor file = duplicate(compiled.descriptor);
  const int64_t size_bytes = compiled.report.artifact_bytes;
  runtime::Module programs = load::make_artifact_module(
      load::open_artifact(std::move(compiled.descriptor), "the compiled model").value_or_throw());
  const std::vector<runtime::Module> imports = programs.imports();
  const runtime::Module built(std::make_unique<BuiltBody>(std::move(programs), std::move(file), size_bytes,
                                                          std::move(compiled.code), options.weights_limit_bytes));
  for (const runtime::Module& import : imports) built.Import(import);
  return built;
}

}  // namespace headrace::driver
