// A backend for tests on headrace/backend_steps.hpp. It computes subtract of equal shapes, concatenate and split of
// float32 tensors and constants; other ops show what becomes of exceptions: each fails in another function.
#include <headrace/backend_steps.hpp>

#include <algorithm>

#ifndef STEPS_VERSION
#define STEPS_VERSION "1"
#endif

// The earlier version whose bytes it reads.
#ifndef STEPS_ACCEPTS
#define STEPS_ACCEPTS "none"
#endif

namespace {

using namespace headrace::plugin;

struct Subtract : Kernel {
  int64_t count = 0;
  void run(const Call& call) const override {
    const float *a = call.data<float>(0), *b = call.data<float>(1);
    float* y = call.data<float>(2);
    for (size_t i = 0; i < 3; ++i) {
      const DLTensor& tensor = call.tensor(i);
      if (tensor.ndim > 0 && (tensor.strides == nullptr || tensor.strides[tensor.ndim - 1] != 1))
        throw std::runtime_error("a tensor has no strides, or others than dense ones");
    }
    call.parallel_for(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) y[i] = a[i] - b[i];
    });
  }
};

// Copies rows of each part into a whole (concatenate), or back (split). `sizes` are the elements of a row of each part.
struct Parts : Kernel {
  bool is_split = false;
  int64_t num_rows = 0;
  std::vector<int64_t> sizes;
  void run(const Call& call) const override {
    auto* whole = call.data<float>(is_split ? 0 : sizes.size());
    for (int64_t row = 0; row < num_rows; ++row) {
      for (size_t i = 0; i < sizes.size(); ++i) {
        float* part = call.data<float>(is_split ? i + 1 : i) + row * sizes[i];
        std::copy_n(is_split ? whole : part, sizes[i], is_split ? part : whole);
        whole += sizes[i];
      }
    }
  }
};

struct Fails : Kernel {
  bool in_a_thread = false;
  void run(const Call& call) const override {
    if (!in_a_thread) call.data<int64_t>(0);
    call.parallel_for(8, [](int64_t begin, int64_t) {
      if (begin == 0) throw std::runtime_error("the first part is too hot");
    });
  }
};

// Counts the elements of a row of each tensor, from the axis on.
std::vector<int64_t> row_sizes(const std::vector<TensorType>& types, size_t axis) {
  std::vector<int64_t> sizes;
  for (const TensorType& type : types) {
    sizes.push_back(1);
    for (size_t i = axis; i < type.rank(); ++i) sizes.back() *= type.shape[i];
  }
  return sizes;
}

class Steps : public StepBackend {
  std::string name() const override { return "steps"; }
  std::string version() const override { return STEPS_VERSION; }
  bool accepts_version(const std::string& recorded) const override {
    if (recorded == "0") throw std::runtime_error("version 0 had no rows");
    return recorded == STEPS_ACCEPTS;
  }
  std::vector<std::string> options() const override { return {"mode", "level"}; }

  Verdict supports(const Node& call) const override {
    if (call.is_call("sigmoid")) return call.attr("flavour").integer() == 0 ? yes() : no("it has a flavour");
    if (call.is_call("erf")) throw 1;
    for (const char* name : {"tanh", "exp", "sqrt", "negative", "ceil"}) {
      if (call.is_call(name)) return yes();
    }
    const Node first = call.operand(0);
    if (!first.type().is<float>() || !first.type().is_static())
      return no("it takes float32 of known sizes", HR_REASON_DTYPE_UNSUPPORTED);
    if (call.is_call("concatenate") || call.is_call("split")) return yes();
    if (!call.is_call("subtract")) return no("it does not compute this op");
    const TensorType other = call.operand(1).type();
    if (other.shape == std::vector<int64_t>(first.type().shape.begin(), first.type().shape.end())) return yes();
    return no("it does not broadcast", HR_REASON_SHAPE_UNSUPPORTED);
  }

  void compile_step(const Node& node, const Request& request, Writer& out) const override {
    if (node.is_call("tanh")) throw Refusal("it has no room for tanh", HR_REASON_SHAPE_UNSUPPORTED);
    if (node.is_call("sqrt")) out.put(request.option("level").integer());
    out.put_text(node.op());
    if (node.is_call("subtract")) out.put(node.type().num_elements());
    if (!node.is_call("concatenate") && !node.is_call("split")) return;
    std::vector<TensorType> parts;
    for (uint32_t i = 0; i < node.operand(0).num_results(); ++i) parts.push_back(node.operand(0).type(i));
    if (node.is_call("split")) parts.clear();
    for (uint32_t i = 0; node.is_call("split") && i < node.num_results(); ++i) parts.push_back(node.type(i));
    const auto rank = static_cast<int64_t>(parts[0].rank());
    const auto axis = static_cast<size_t>((node.attr("axis").integer() + rank) % rank);
    out.put_all(row_sizes(parts, axis));
    int64_t num_rows = 1;
    for (size_t i = 0; i < axis; ++i) num_rows *= parts[0].shape[i];
    out.put(num_rows);
  }

  std::unique_ptr<Kernel> load_step(Reader& in) const override {
    const std::string op = in.get_text();
    if (op == "ceil") return nullptr;
    if (op == "exp" || op == "negative") {
      auto made = std::make_unique<Fails>();
      made->in_a_thread = op == "negative";
      return made;
    }
    if (op == "subtract") {
      auto made = std::make_unique<Subtract>();
      made->count = in.get<int64_t>();
      return made;
    }
    auto made = std::make_unique<Parts>();
    made->is_split = op == "split";
    made->sizes = in.get_all<int64_t>();
    made->num_rows = in.get<int64_t>();
    return made;
  }
};

}  // namespace

HEADRACE_BACKEND(Steps)
