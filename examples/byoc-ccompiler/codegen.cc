// A code generator that writes C, as a shared library: float32 additions, subtractions and multiplications.
// docs/bring-your-own-codegen.md builds and explains it. These headers are installed, for one version.
#include <cstdio>
#include <map>

#include "codegen/codegen_c.h"
#include "lower/user_ops/porting.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace mine {

using namespace headrace;

// Returns the operator of C for a call; nullptr where there is none.
const char* SignOf(const relay::CallNode& call) {
  static const std::map<std::string, const char*> signs{{"add", "+"}, {"subtract", "-"}, {"multiply", "*"}};
  const auto found = call.as_op() == nullptr ? signs.end() : signs.find(call.as_op()->name);
  return found == signs.end() ? nullptr : found->second;
}

// Returns whether the code generator takes a call: of float32 tensors that all have one known shape.
bool Takes(const Expr& expr) {
  const auto* call = expr.as<relay::CallNode>();
  const auto* type = expr->checked_type().as<TensorTypeNode>();
  if (call == nullptr || SignOf(*call) == nullptr || type == nullptr || type->dtype != DataType::float_(32))
    return false;
  const auto shape = relay::known_shape_of(expr);
  return shape && relay::known_shape_of(call->args[0]) == shape && relay::known_shape_of(call->args[1]) == shape;
}

// Writes one region: a function of C for each call, and those that CodegenCBase makes around them.
class CodegenC : public codegen::CodegenCBase {
 public:
  explicit CodegenC(std::string symbol) : symbol_(std::move(symbol)) {}

  std::string Write(const relay::Function& function) {
    args_ = function->params;
    for (const relay::Var& param : args_) names_[param.get()] = param->name_hint;
    relay::post_order(function->body, [&](const Expr& expr) { Visit(expr); });
    std::vector<codegen::Output> outputs;
    if (const auto* tuple = function->body.as<relay::TupleNode>()) {
      for (const Expr& field : tuple->items) outputs.push_back(OutputOf(field));
    } else {
      outputs.push_back(OutputOf(function->body));
    }
    return JIT(outputs);
  }

  std::string JIT(const std::vector<codegen::Output>& out) override {
    return code_stream_.str() + JitImpl(symbol_, args_, buffers_, body_, out);
  }

 private:
  static int64_t CountOf(const Expr& expr) { return num_elements(relay::known_shape_of(expr).value()); }

  codegen::Output OutputOf(const Expr& expr) const {
    return {.name = names_.at(expr.get()), .dtype = "float", .need_copy = true, .size = 4 * CountOf(expr)};
  }

  // post_order visits each node once, so a node that is used twice is computed once. A program may mark a function by
  // itself, in which case nobody has asked Takes() before.
  void Visit(const Expr& expr) {
    if (expr.is<OpNode>() || expr.is<relay::VarNode>() || expr.is<relay::TupleNode>()) return;
    if (const auto* constant = expr.as<relay::ConstantNode>()) return VisitConstant(expr, constant->data);
    if (!Takes(expr))
      throw_user_error("'mine' cannot compile the region '{}': it adds, subtracts and multiplies float32 tensors",
                       symbol_);
    VisitCall(expr, *expr.as<relay::CallNode>());
  }

  void VisitConstant(const Expr& expr, const NDArray& data) {
    const std::string name = symbol_ + "_const_" + std::to_string(num_constants_++);
    code_stream_ << "static const float " << name << "[] = {";
    for (int64_t i = 0; i < CountOf(expr); ++i) {
      char number[40];
      std::snprintf(number, sizeof number, "%a,", static_cast<double>(data.data<float>()[i]));
      code_stream_ << number;
    }
    code_stream_ << "};\n";
    names_[expr.get()] = name;
  }

  void VisitCall(const Expr& expr, const relay::CallNode& call) {
    const std::string function = symbol_ + "_" + std::to_string(buffers_.size());
    const std::string buffer = "buf_" + std::to_string(buffers_.size());
    code_stream_ << "static void " << function << "(const float* a, const float* b, float* y) {\n";
    EnterScope();
    PrintIndents();
    code_stream_ << "for (int64_t i = 0; i < " << CountOf(expr) << "; ++i) y[i] = a[i] " << SignOf(call) << " b[i];\n";
    ExitScope();
    code_stream_ << "}\n";
    buffers_.push_back("float* " + buffer + " = (float*)malloc(" + std::to_string(4 * CountOf(expr)) + ");");
    body_.push_back(function + "(" + names_.at(call.args[0].get()) + ", " + names_.at(call.args[1].get()) + ", " +
                    buffer + ");");
    names_[expr.get()] = buffer;
  }

  std::string symbol_;
  Array<relay::Var> args_;
  std::map<const Object*, std::string> names_;  // in the text: of parameters, constants and results
  std::vector<std::string> buffers_, body_;
  int num_constants_ = 0;
};

class CSourceCodegen : public codegen::CSourceModuleCodegenBase {
 public:
  runtime::Module CreateCSourceModule(const ObjectRef& ref) override {
    const auto function = ref.cast<relay::FunctionNode>();
    const std::string symbol = GetExtSymbol(function);
    const PackedFunc create = get_global("runtime.module.csource_module_create");
    return create(CodegenC(symbol).Write(function), std::string("c"), Array<std::string>{symbol}).as<runtime::Module>();
  }
};

TVM_REGISTER_GLOBAL("relay.ext.mine").set_body_typed([](const relay::Function& function) {
  return CSourceCodegen().CreateCSourceModule(function);
});
RELAY_REGISTER_OP("add").set_attr<PackedFunc>("target.mine", make_packed(Takes));
RELAY_REGISTER_OP("subtract").set_attr<PackedFunc>("target.mine", make_packed(Takes));
RELAY_REGISTER_OP("multiply").set_attr<PackedFunc>("target.mine", make_packed(Takes));

}  // namespace mine
