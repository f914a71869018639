#include "codegen/codegen_c.h"

#include <regex>

#include "codegen/c_module.h"
#include "relay/function_attrs.h"

namespace headrace::codegen {

namespace {

std::string plain_function(const CRegion& region) {
  std::string params;
  for (const CTensor& input : region.inputs) params += fmt::format("const {}* {}, ", input.type, input.name);
  for (const CTensor& output : region.outputs) params += fmt::format("{}* {}, ", output.type, output.name);
  if (region.has_workspace) params += "char* workspace, ";
  params.resize(params.size() - 2);
  std::string text = fmt::format("void {}_({}) {{\n", region.symbol, params);
  if (region.has_workspace) text += "  (void)workspace;\n";
  for (const std::string& line : region.body) text += fmt::format("  {}\n", line);
  return text + "}\n\n";
}

std::string wrapper_function(const CRegion& region) {
  std::string params, plain;
  for (const CTensor& input : region.inputs) {
    params += fmt::format("DLTensor* {}, ", input.name);
    plain += fmt::format("(const {}*){}->data, ", input.type, input.name);
  }
  for (const CTensor& output : region.outputs) {
    params += fmt::format("DLTensor* {}, ", output.name);
    plain += fmt::format("({}*){}->data, ", output.type, output.name);
  }
  if (region.has_workspace) params += "char* workspace, ", plain += "workspace, ";
  params.resize(params.size() - 2);
  plain.resize(plain.size() - 2);
  return fmt::format("int32_t {0}__wrapper_({1}) {{\n  {0}_({2});\n  return 0;\n}}\n\n", region.symbol, params, plain);
}

std::string kernel_function(const CRegion& region) {
  const size_t count = region.inputs.size() + region.outputs.size();
  if (!region.has_workspace && count <= kMostTypedArguments)
    return fmt::format("TVM_DLL_EXPORT_TYPED_FUNC({0}, {0}__wrapper_)\n\n", region.symbol);
  std::string args;
  for (size_t i = 0; i < count; ++i) args += fmt::format("args[{}], ", i);
  if (region.has_workspace) args += "(char*)env->workspace, ";
  args.resize(args.size() - 2);
  return fmt::format(
      "int32_t {0}(const hr_kernel_env* env, DLTensor* const* args) {{\n  (void)env;\n  return "
      "{0}__wrapper_({1});\n}}\n\n",
      region.symbol, args);
}

// Returns the name that a declaration of C gives to memory of malloc or calloc; "" if it is no such declaration.
std::string allocated_by(const std::string& declaration) {
  static const std::regex pattern(R"((\w+)\s*=[^=]*\b[mc]alloc\s*\()");
  std::smatch match;
  return std::regex_search(declaration, match, pattern) ? match[1].str() : "";
}

}  // namespace

std::string region_functions(const CRegion& region) {
  return plain_function(region) + wrapper_function(region) + kernel_function(region);
}

std::string CSourceModuleCodegenBase::GetExtSymbol(const relay::Function& function) {
  const auto symbol = relay::symbol_of(*function);
  if (!symbol)
    throw_at(
        function->span, "compile",
        fmt::format("a function for a C code generator has no name; give it the attribute {}", relay::kGlobalSymbol));
  return *symbol;
}

void CodegenCBase::PrintIndents() {
  for (int i = 0; i < indent_; ++i) code_stream_ << ' ';
}

std::string CodegenCBase::GetDtypeString(const Type& tensor) {
  const auto* type = tensor.as<TensorTypeNode>();
  const std::string name = type == nullptr ? "" : type->dtype.to_string();
  if (name == "float32") return "float";
  if (name == "float64") return "double";
  if (name == "bool") return "bool";
  for (const char* whole : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}) {
    if (name == whole) return name + "_t";
  }
  throw_user_error("a C code generator has no type for elements of '{}'", name.empty() ? "no tensor" : name);
}

std::string CodegenCBase::JitImpl(const std::string& symbol, const Array<relay::Var>& args,
                                  const std::vector<std::string>& buf_decl, const std::vector<std::string>& body,
                                  const std::vector<Output>& out) {
  CRegion region{.symbol = symbol, .inputs = {}, .outputs = {}, .body = buf_decl};
  for (const relay::Var& arg : args) {
    const std::vector<Type> leaves = leaves_of(arg->checked_type());
    for (size_t i = 0; i < leaves.size(); ++i)
      region.inputs.push_back({.name = leaves.size() == 1 ? arg->name_hint : fmt::format("{}_{}", arg->name_hint, i),
                               .type = GetDtypeString(leaves[i])});
  }
  region.body.insert(region.body.end(), body.begin(), body.end());
  for (size_t i = 0; i < out.size(); ++i) {
    const std::string name = out[i].need_copy ? fmt::format("out{}", i) : out[i].name;
    region.outputs.push_back({.name = name, .type = out[i].dtype});
    if (!out[i].need_copy) continue;
    region.body.push_back(fmt::format("memcpy({}, {}, {});", name, out[i].name, out[i].size));
  }
  for (const std::string& declaration : buf_decl) {
    const std::string buffer = allocated_by(declaration);
    if (!buffer.empty()) region.body.push_back(fmt::format("free({});", buffer));
  }
  return region_functions(region);
}

}  // namespace headrace::codegen
