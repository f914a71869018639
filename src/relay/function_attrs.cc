#include "relay/function_attrs.h"

namespace headrace::relay {

namespace {

std::optional<std::string> name_in(const FunctionNode& function, const char* attribute) {
  const auto value = function.attrs.get(attribute);
  if (!value) return std::nullopt;
  const bool is_name = ValueTraits<std::string>::matches(value->raw());
  if (!is_name || value->as<std::string>().empty())
    throw_at(function.span, "compile",
             fmt::format("the attribute {} of a function is not a name; give it a string", attribute));
  return value->as<std::string>();
}

}  // namespace

std::optional<std::string> compiler_of(const FunctionNode& function) { return name_in(function, kCompiler); }
std::optional<std::string> symbol_of(const FunctionNode& function) { return name_in(function, kGlobalSymbol); }

Shape result_strides_of(const FunctionNode& function) {
  const auto value = function.attrs.get(kResultStrides);
  return value ? value->as<Shape>() : Shape();
}

bool is_primitive(const FunctionNode& function) {
  const auto value = function.attrs.get(kPrimitive);
  return value && value->is<int64_t>() && value->as<int64_t>() != 0;
}

bool is_left_alone(const FunctionNode& function) {
  return is_primitive(function) || function.attrs.contains(kCompiler) || function.attrs.contains(kSkipOptimization);
}

bool is_sealed(const FunctionNode& function) {
  return is_primitive(function) || function.attrs.contains(kCompiler) || function.attrs.contains(kComposite);
}

bool is_entered(const Expr& expr) {
  const auto* function = expr.as<FunctionNode>();
  return function == nullptr || !(is_sealed(*function) || is_left_alone(*function));
}

}  // namespace headrace::relay
