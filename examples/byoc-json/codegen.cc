// A graph format and a runtime for it, as a shared library: float32 additions, subtractions and multiplications.
// docs/bring-your-own-codegen.md builds and explains it. These headers are installed, for one version.
#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>

#include "base/read_text.h"
#include "lower/user_ops/porting.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"
#include "runtime/module.h"

namespace mygraph {

using namespace headrace;

// ---- the format: a line "NAME COUNT", a line for each node and each result, and the line "end"
//
//   f 100
//   input
//   input
//   add 0 1      nodes are numbered from 0; the operands are above
//   output 2
//   end

struct Node {
  std::string op;
  size_t a = 0, b = 0;
};

struct Graph {
  std::string name;
  int64_t count = 0;  // the elements of each tensor
  std::vector<Node> nodes;
  std::vector<size_t> outputs;
};

// Adds what a line after the first says.
void ReadLine(std::istringstream& words, Graph& graph, const std::function<void(const std::string&)>& fail) {
  Node node;
  words >> node.op;
  const bool is_op = node.op == "add" || node.op == "sub" || node.op == "mul", is_output = node.op == "output";
  if (!is_op && !is_output && node.op != "input") fail("there is no op '" + node.op + "'");
  if ((is_op || is_output) && !(words >> node.a)) fail("an operand is missing");
  if (is_op && !(words >> node.b)) fail("an operand is missing");
  if ((is_op || is_output) && std::max(node.a, node.b) >= graph.nodes.size()) fail("an operand is not above");
  if (is_output) {
    graph.outputs.push_back(node.a);
  } else {
    graph.nodes.push_back(node);
  }
}

Graph ReadGraph(const std::string& text) {
  std::istringstream lines(text);
  Graph graph;
  std::string line;
  for (int number = 1; std::getline(lines, line) && line != "end"; ++number) {
    const auto fail = [&](const std::string& why) { throw_user_error("line {} of the graph: {}", number, why); };
    std::istringstream words(line);
    if (number > 1) {
      ReadLine(words, graph, fail);
    } else if (!(words >> graph.name >> graph.count)) {
      fail("a name and a number of elements are expected");
    }
  }
  // Without its last newline, too, a file is not whole.
  if (!text.ends_with("end\n") || line != "end" || graph.outputs.empty())
    throw_user_error("the graph is cut off: it has no output, or no end");
  return graph;
}

// ---- the runtime

// Returns the elements of an argument: a program passes DLTensor*, a caller of the module's function an NDArray.
float* ElementsOf(const Graph& graph, Args args, int32_t index) {
  const RawValue& raw = args[index];
  const bool is_pointer = raw.type_index == type_index::kDLTensorPtr;
  const DLTensor& tensor = is_pointer ? *static_cast<const DLTensor*>(raw.v.v_ptr) : args.at<NDArray>(index).tensor();
  const bool is_float = tensor.dtype.code == kDLFloat && tensor.dtype.bits == 32;
  if (!is_float || num_elements(Shape(tensor.shape, tensor.shape + tensor.ndim)) != graph.count)
    throw_user_error("argument {} of '{}' does not have {} float32 elements", index, graph.name, graph.count);
  return reinterpret_cast<float*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

// Computes element by element, because all tensors of a graph have one shape.
void Run(const Graph& graph, Args args) {
  std::vector<float*> tensors;
  for (int32_t i = 0; i < args.size(); ++i) tensors.push_back(ElementsOf(graph, args, i));
  const auto is_input = [](const Node& node) { return node.op == "input"; };
  const auto num_inputs = static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), is_input));
  if (tensors.size() != num_inputs + graph.outputs.size())
    throw_user_error("'{}' takes {} inputs and {} outputs", graph.name, num_inputs, graph.outputs.size());
  std::vector<float> values(graph.nodes.size());
  for (int64_t i = 0; i < graph.count; ++i) {
    size_t next = 0;
    for (size_t k = 0; k < values.size(); ++k) {
      const Node& node = graph.nodes[k];
      const float a = values[node.a], b = values[node.b];
      values[k] = is_input(node) ? tensors[next++][i] : node.op == "add" ? a + b : node.op == "sub" ? a - b : a * b;
    }
    for (const size_t output : graph.outputs) tensors[next++][i] = values[output];
  }
}

class GraphModule : public runtime::ModuleBody {
 public:
  explicit GraphModule(std::string text) : text_(std::move(text)), graph_(std::make_shared<Graph>(ReadGraph(text_))) {}
  std::string_view type_key() const override { return "mygraph"; }
  PackedFunc get_function(const std::string& name, const runtime::Module&) override {
    if (name != graph_->name) return {};
    return PackedFunc([graph = graph_](Args args) { return Run(*graph, args), Value(); });
  }
  std::string save_to_binary(const runtime::Module&) const override { return text_; }
  void save_to_file(const std::string& path, const std::string&, const runtime::Module&) const override {
    if (!(std::ofstream(path) << text_).flush()) throw_user_error("cannot write '{}'", path);
  }
  std::string get_source(const std::string&) const override { return text_; }

 private:
  std::string text_;
  std::shared_ptr<const Graph> graph_;
};

runtime::Module MakeModule(const std::string& text) { return runtime::Module(std::make_unique<GraphModule>(text)); }

// ---- the code generator

const char* WordOf(const relay::CallNode& call) {
  static const std::map<std::string, const char*> words{{"add", "add"}, {"subtract", "sub"}, {"multiply", "mul"}};
  const auto found = call.as_op() == nullptr ? words.end() : words.find(call.as_op()->name);
  return found == words.end() ? nullptr : found->second;
}

// Returns whether the format can express a call: of float32 tensors of one known shape, none of them a constant.
bool Takes(const Expr& expr) {
  const auto* call = expr.as<relay::CallNode>();
  const auto* type = expr->checked_type().as<TensorTypeNode>();
  if (call == nullptr || WordOf(*call) == nullptr || type == nullptr || type->dtype != DataType::float_(32))
    return false;
  const auto shape = relay::known_shape_of(expr);
  for (const Expr& arg : call->args) {
    if (!shape || arg.is<relay::ConstantNode>() || relay::known_shape_of(arg) != shape) return false;
  }
  return true;
}

runtime::Module Compile(const relay::Function& function) {
  const auto* tuple = function->body.as<relay::TupleNode>();
  const std::vector<Expr> results = tuple == nullptr ? std::vector<Expr>{function->body}
                                                     : std::vector<Expr>(tuple->items.begin(), tuple->items.end());
  std::map<const Object*, size_t> numbers;
  std::ostringstream text;
  text << *relay::symbol_of(*function) << ' ' << num_elements(relay::known_shape_of(results[0]).value()) << '\n';
  for (const relay::Var& param : function->params) {
    numbers.emplace(param.get(), numbers.size());
    text << "input\n";
  }
  relay::post_order(function->body, [&](const Expr& expr) {
    if (expr.is<OpNode>() || expr.is<relay::VarNode>() || expr.is<relay::TupleNode>()) return;
    if (!Takes(expr))
      throw_user_error("'mygraph' cannot compile a region: it adds, subtracts and multiplies float32 tensors");
    const auto* call = expr.as<relay::CallNode>();
    text << WordOf(*call) << ' ' << numbers.at(call->args[0].get()) << ' ' << numbers.at(call->args[1].get()) << '\n';
    numbers.emplace(expr.get(), numbers.size());
  });
  for (const Expr& result : results) text << "output " << numbers.at(result.get()) << '\n';
  text << "end\n";
  return MakeModule(text.str());
}

TVM_REGISTER_GLOBAL("relay.ext.mygraph").set_body_typed(Compile);
TVM_REGISTER_GLOBAL("runtime.module.loadbinary_mygraph").set_body_typed([](const Bytes& bytes) {
  return MakeModule(bytes.data);
});
TVM_REGISTER_GLOBAL("runtime.module.loadfile_mygraph").set_body_typed([](const std::string& path, const std::string&) {
  return MakeModule(read_text(path, "graphs"));
});
RELAY_REGISTER_OP("add").set_attr<PackedFunc>("target.mygraph", make_packed(Takes));
RELAY_REGISTER_OP("subtract").set_attr<PackedFunc>("target.mygraph", make_packed(Takes));
RELAY_REGISTER_OP("multiply").set_attr<PackedFunc>("target.mygraph", make_packed(Takes));

}  // namespace mygraph
