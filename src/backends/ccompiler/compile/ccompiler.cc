#include "backends/ccompiler/compile/ccompiler.h"

#include "backends/ccompiler/compile/ops.h"
#include "backends/ccompiler/compile/region_text.h"
#include "backends/ccompiler/compile/run_compiler.h"
#include "codegen/c_source.h"

namespace headrace::backends::ccompiler {

namespace {

using partition::RegionCode;

class CCompiler : public partition::Backend {
 public:
  std::string_view name() const override { return "ccompiler"; }
  std::string version() const override { return "1"; }
  partition::Verdict supports(const relay::CallNode& call) const override { return ccompiler::supports(call); }

  std::vector<Expected<RegionCode>> compile(const partition::RegionRequest& request) const override {
    std::vector<Expected<RegionCode>> codes;
    std::string source(codegen::c_kernel_head());
    bool has_text = false;
    for (const partition::RegionSource& region : request.regions) {
      const Expected<RegionText> text = region_text(region);
      if (!text) {
        codes.emplace_back(text.refusal());
        continue;
      }
      source += text.value().text;
      has_text = true;
      codes.emplace_back(RegionCode{.symbol = region.name, .workspace_bytes = text.value().workspace_bytes});
    }
    if (has_text) add_object(codes, compile_c(find_compiler(compiler_option(request.options)), source));
    return codes;
  }

 private:
  static std::string compiler_option(const Map<std::string, Value>& options) {
    std::string compiler;
    for (const auto& [key, value] : options) {
      if (key != "cc") throw_user_error("the backend 'ccompiler' has no option '{}'; it has cc, the C compiler", key);
      if (!value.is<std::string>())
        throw_user_error("the option cc of the backend 'ccompiler' is no name of a program");
      compiler = value.as<std::string>();
    }
    return compiler;
  }

  // Gives the object, which holds all regions, to the first of them.
  static void add_object(std::vector<Expected<RegionCode>>& codes, std::string bytes) {
    for (Expected<RegionCode>& code : codes) {
      if (!code) continue;
      code.value().object = {.name = "the regions of ccompiler", .bytes = std::move(bytes)};
      return;
    }
  }
};

}  // namespace

std::shared_ptr<const partition::Backend> make_backend() { return std::make_shared<CCompiler>(); }

}  // namespace headrace::backends::ccompiler
