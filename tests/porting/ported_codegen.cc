// A user's code generators, in the way of the classic guide: one that writes C, one that writes a graph for a module of
// its own runtime. Built as a shared library against the headers of the project and loaded into a process that
// compiles.
#include <map>

#include "codegen/c_module.h"
#include "codegen/codegen_c.h"
#include "lower/user_ops/porting.h"
#include "relay/visit.h"
#include "runtime/module.h"

namespace mine {

using namespace headrace;

// The C of one region of float32 additions, subtractions and multiplications.
class CodegenC : public codegen::CodegenCBase {
 public:
  explicit CodegenC(std::string symbol) : symbol_(std::move(symbol)) {}

  std::string Write(const relay::Function& function) {
    args_ = function->params;
    for (const relay::Var& param : function->params) names_[param.get()] = param->name_hint;
    relay::post_order(function->body, [&](const Expr& expr) {
      if (const auto* call = expr.as<relay::CallNode>()) VisitCall(*call);
    });
    return JIT({{.name = names_.at(function->body.get()), .dtype = "float", .need_copy = true, .size = bytes_}});
  }

  std::string JIT(const std::vector<codegen::Output>& out) override {
    return code_stream_.str() + JitImpl(symbol_, args_, buffers_, body_, out);
  }

 private:
  void VisitCall(const relay::CallNode& call) {
    const std::string name = call.as_op()->name;
    const char* sign = name == "add" ? "+" : name == "subtract" ? "-" : "*";
    const Shape shape = as_shape(call.checked_type().as<TensorTypeNode>()->shape).value();
    const int64_t count = num_elements(shape);
    const size_t index = buffers_.size();
    bytes_ = 4 * count;
    code_stream_ << "static void " << symbol_ << "_" << index << "(const float* a, const float* b, float* y) {\n";
    EnterScope();
    PrintIndents();
    code_stream_ << "for (int64_t i = 0; i < " << count << "; ++i) y[i] = a[i] " << sign << " b[i];\n";
    ExitScope();
    code_stream_ << "}\n";
    const std::string buffer = fmt::format("buf_{}", index);
    buffers_.push_back(fmt::format("float* {} = (float*)malloc({});", buffer, bytes_));
    body_.push_back(fmt::format("{}_{}({}, {}, {});", symbol_, index, names_.at(call.args[0].get()),
                                names_.at(call.args[1].get()), buffer));
    names_[&call] = buffer;
  }

  std::string symbol_;
  Array<relay::Var> args_;
  std::map<const Object*, std::string> names_;
  std::vector<std::string> buffers_, body_;
  int64_t bytes_ = 0;
};

class CSourceCodegen : public codegen::CSourceModuleCodegenBase {
 public:
  runtime::Module CreateCSourceModule(const ObjectRef& ref) override {
    const auto function = ref.cast<relay::FunctionNode>();
    const std::string symbol = GetExtSymbol(function);
    const PackedFunc create = get_global("module.csource_module_create");
    return create(CodegenC(symbol).Write(function), std::string("c"), Array<std::string>{symbol}).as<runtime::Module>();
  }
};

// The text of a graph with one node: subgraph names, inputs, an addition.
runtime::Module WriteGraph(const relay::Function& function) {
  const Shape shape = as_shape(function->body->checked_type().as<TensorTypeNode>()->shape).value();
  const std::string dims = fmt::format("{}", fmt::join(shape, " "));
  const std::string text = fmt::format("{}\n  input 0 {}\n  input 1 {}\n  add 2 inputs: 0 1 shape: {}\n",
                                       function->attrs.get("global_symbol")->as<std::string>(), dims, dims, dims);
  return get_global("module.examplejson_module_create")(text).as<runtime::Module>();
}

// A graph whose file is not what it holds, for the conformance kit to find.
class WrongFile : public runtime::ModuleBody {
 public:
  explicit WrongFile(runtime::Module graph) : graph_(std::move(graph)) {}
  std::string_view type_key() const override { return "ported_wrong_file"; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override { return graph_.GetFunction(name); }
  std::string save_to_binary(const runtime::Module&) const override { return graph_.SaveToBinary(); }
  void save_to_file(const std::string& path, const std::string&, const runtime::Module&) const override {
    const PackedFunc create = get_global("module.examplejson_module_create");
    create(graph_.GetSource() + "\n").as<runtime::Module>().SaveToFile(path, "");
  }

 private:
  runtime::Module graph_;
};

runtime::Module MakeWrongFile(const Value& graph) {
  return runtime::Module(std::make_unique<WrongFile>(graph.as<runtime::Module>()));
}

TVM_REGISTER_GLOBAL("relay.ext.ported_wrong_file").set_body_typed([](const relay::Function& function) {
  return MakeWrongFile(Value(WriteGraph(function)));
});
TVM_REGISTER_GLOBAL("runtime.module.loadbinary_ported_wrong_file").set_body_typed([](const Bytes& bytes) {
  return MakeWrongFile(get_global("runtime.module.loadbinary_examplejson")(bytes));
});
TVM_REGISTER_GLOBAL("runtime.module.loadfile_ported_wrong_file")
    .set_body_typed([](const std::string& path, const std::string&) {
      return MakeWrongFile(get_global("runtime.module.loadfile_examplejson")(path, std::string("examplejson")));
    });
RELAY_REGISTER_OP("add").set_attr<PackedFunc>("target.ported_wrong_file",
                                              make_packed([](const Expr&) { return true; }));

TVM_REGISTER_GLOBAL("relay.ext.ported_c").set_body_typed([](const relay::Function& function) {
  return CSourceCodegen().CreateCSourceModule(function);
});
TVM_REGISTER_GLOBAL("relay.ext.ported_graph").set_body_typed(WriteGraph);

}  // namespace mine
