#include "codegen/c_module.h"

#include <algorithm>

#include "codegen/c_compiler.h"
#include "codegen/c_source.h"

namespace headrace::codegen {

namespace {

class CSourceBody : public runtime::ModuleBody {
 public:
  CSourceBody(std::string source, CLanguage language, Array<std::string> functions, Array<std::string> const_vars)
      : source_(std::move(source)),
        language_(language),
        functions_(std::move(functions)),
        const_vars_(std::move(const_vars)) {}
  std::string_view type_key() const override { return kCModuleKind; }
  std::string get_source(const std::string& format) const override {
    return format == "file" ? c_source_head() + source_ : source_;
  }
  CLanguage language() const { return language_; }

  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    if (name == "get_symbol" && !functions_.empty()) return make_packed([symbol = functions_[0]] { return symbol; });
    if (name == "get_func_names") return make_packed([names = functions_] { return names; });
    if (name == "get_const_vars") return make_packed([names = const_vars_] { return names; });
    if (std::find(functions_.begin(), functions_.end(), name) == functions_.end()) return {};
    return PackedFunc([name](Args) -> Value {
      throw_user_error(
          "'{}' is C source, which is compiled with the program that calls it: relay.build does so for a "
          "module that a function relay.ext.NAME returns",
          name);
    });
  }

 private:
  const std::string source_;
  const CLanguage language_;
  const Array<std::string> functions_, const_vars_;
};

CLanguage language_of(const std::string& format) {
  if (format == "c") return CLanguage::c;
  if (format == "cc" || format == "cpp" || format == "cxx") return CLanguage::cpp;
  throw_user_error("there is no source format '{}'; the formats are c, and cc, cpp and cxx for C++", format);
}

constexpr std::string_view kCppMacro =
    "template <typename R, typename... A, std::size_t... I>\n"
    "static int32_t hr_call_typed(R (*f)(A...), DLTensor* const* args, std::index_sequence<I...>) {\n"
    "  return static_cast<int32_t>(f(args[I]...));\n"
    "}\n"
    "#define TVM_DLL_EXPORT_TYPED_FUNC(ExportName, Function) \\\n"
    "  template <typename R, typename... A> \\\n"
    "  static int32_t hr_typed_##ExportName(R (*f)(A...), DLTensor* const* args) { \\\n"
    "    return hr_call_typed(f, args, std::index_sequence_for<A...>()); \\\n"
    "  } \\\n"
    "  extern \"C\" int32_t ExportName(const hr_kernel_env*, DLTensor* const* args) { \\\n"
    "    return hr_typed_##ExportName(Function, args); \\\n"
    "  }\n";

// The type of the function chooses its caller.
std::string c_macro() {
  std::string types, args, callers, cases;
  for (size_t i = 0; i < kMostTypedArguments; ++i) {
    types += i == 0 ? "DLTensor*" : ", DLTensor*";
    args += fmt::format("{}args[{}]", i == 0 ? "" : ", ", i);
    callers += fmt::format(
        "HR_UNUSED static inline int32_t hr_call_{}(void (*f)(void), DLTensor* const* args) {{\n"
        "  return ((int32_t (*)({}))f)({});\n}}\n",
        i + 1, types, args);
    cases += fmt::format("{} \\\n      int32_t (*)({}): hr_call_{}", i == 0 ? "" : ",", types, i + 1);
  }
  return fmt::format(
      "#ifdef __GNUC__\n"
      "#define HR_UNUSED __attribute__((unused))\n"
      "#else\n"
      "#define HR_UNUSED\n"
      "#endif\n"
      "{}"
      "#define TVM_DLL_EXPORT_TYPED_FUNC(ExportName, Function) \\\n"
      "  int32_t ExportName(const hr_kernel_env* env, DLTensor* const* args) {{ \\\n"
      "    (void)env; \\\n"
      "    return _Generic(&(Function),{})((void (*)(void))(Function), args); \\\n"
      "  }}\n",
      callers, cases);
}

}  // namespace

std::string c_source_head() {
  return fmt::format(
      "{}#include <stdlib.h>\n\n"
      "/* Makes the kernel ExportName of a function of DLTensor*, inputs first, then outputs. */\n"
      "#ifndef TVM_DLL_EXPORT_TYPED_FUNC\n"
      "#ifdef __cplusplus\n"
      "#include <utility>\n"
      "{}"
      "#else\n"
      "{}"
      "#endif\n"
      "#endif\n\n",
      c_kernel_head(), kCppMacro, c_macro());
}

runtime::Module make_c_module(const std::string& source, const std::string& format, const Array<std::string>& functions,
                              const Array<std::string>& const_vars) {
  return runtime::Module(std::make_unique<CSourceBody>(source, language_of(format), functions, const_vars));
}

bool is_c_module(const runtime::Module& module) {
  return module && dynamic_cast<const CSourceBody*>(&module.body()) != nullptr;
}

std::string compile_c_module(const runtime::Module& module, const std::string& compiler, std::string_view user) {
  const auto& body = dynamic_cast<const CSourceBody&>(module.body());
  return compile_c(find_c_compiler(compiler, user, body.language()), module.GetSource("file"), body.language());
}

}  // namespace headrace::codegen
