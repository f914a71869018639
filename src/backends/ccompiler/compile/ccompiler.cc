#include "backends/ccompiler/compile/ccompiler.h"

#include "backends/ccompiler/compile/names.h"
#include "backends/ccompiler/compile/ops.h"
#include "backends/ccompiler/compile/region_text.h"
#include "codegen/c_module.h"

namespace headrace::backends::ccompiler {

namespace {

using partition::RegionCode;

class CCompiler : public partition::Backend {
 public:
  std::string_view name() const override { return "ccompiler"; }
  std::string version() const override { return "1"; }
  partition::Verdict supports(const relay::CallNode& call) const override { return ccompiler::supports(call); }

  std::vector<Expected<RegionCode>> compile(const partition::RegionRequest& request) const override {
    const std::string compiler = compiler_option(request.options);
    std::vector<Expected<RegionCode>> codes;
    std::string source;
    Array<std::string> names;
    for (const partition::RegionSource& region : request.regions) {
      if (const std::string fault = name_fault(region.name, names); !fault.empty()) {
        codes.emplace_back(Refusal{HR_REASON_OP_UNSUPPORTED, fault});
        continue;
      }
      const Expected<RegionText> text = region_text(region);
      if (!text) {
        codes.emplace_back(text.refusal());
        continue;
      }
      source += text.value().text;
      names.push_back(region.name);
      codes.emplace_back(RegionCode{.symbol = region.name, .workspace_bytes = text.value().workspace_bytes});
    }
    if (!names.empty()) add_code(codes, codegen::make_c_module(source, "c", names), compiler);
    return codes;
  }

 private:
  static std::string compiler_option(const Map<std::string, Value>& options) {
    std::string compiler;
    for (const auto& [key, value] : options) {
      if (key != "cc") throw_user_error("the backend 'ccompiler' has no option '{}'; it has cc, the C compiler", key);
      if (!value.is<std::string>())
        throw_user_error("the option cc of the backend 'ccompiler' is not a name of a program");
      compiler = value.as<std::string>();
    }
    return compiler;
  }

  // Gives the object, which holds all regions, to the first of them.
  static void add_code(std::vector<Expected<RegionCode>>& codes, const runtime::Module& source,
                       const std::string& compiler) {
    std::string bytes = codegen::compile_c_module(source, compiler, "the backend 'ccompiler'");
    for (Expected<RegionCode>& code : codes) {
      if (!code) continue;
      if (!bytes.empty()) code.value().object = {.name = "the regions of ccompiler", .bytes = std::move(bytes)};
      bytes.clear();
      code.value().source = source;
    }
  }
};

}  // namespace

std::shared_ptr<const partition::Backend> make_backend() { return std::make_shared<CCompiler>(); }

}  // namespace headrace::backends::ccompiler
