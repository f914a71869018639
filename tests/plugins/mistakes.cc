// Backends in C++ that are wrong, for the tests of the conformance kit. MISTAKE is one of these:
//   1 it writes zeros for nn.upsampling     2 it writes zeros for convolutions in float64
//   3 a run throws                          4 loading throws                            5 compiling throws
//   6 it adds 0.125 to what sqrt, log and acosh give                                    7 questions throw
#include <headrace/backend_steps.hpp>

#include <cmath>
#include <cstring>

namespace {

using namespace headrace::plugin;

int64_t size_of(const TensorType& type) { return type.num_elements() * ((type.dtype.bits + 7) / 8); }

struct Zeros : Kernel {
  int64_t size = 0;
  size_t output = 0;
  void run(const Call& call) const override {
    if (MISTAKE == 3) throw std::runtime_error("the chip is too hot");
    std::memset(call.tensor(output).data, 0, static_cast<size_t>(size));
  }
};

struct OffByABit : Kernel {
  int64_t count = 0;
  std::string op;
  void run(const Call& call) const override {
    const float* x = call.data<float>(0);
    float* y = call.data<float>(1);
    for (int64_t i = 0; i < count; ++i)
      y[i] = 0.125f + (op == "sqrt" ? std::sqrt(x[i]) : op == "log" ? std::log(x[i]) : std::acosh(x[i]));
  }
};

class Mistakes : public StepBackend {
  std::string name() const override { return BACKEND_NAME; }

  Verdict supports(const Node& call) const override {
    if (MISTAKE == 7 && call.is_call("sqrt")) return call.attr("axis").integer() == 0 ? yes() : no("it has an axis");
    if (MISTAKE == 7) throw Refusal("the chip computes sqrt only");
    const bool is_offset = call.is_call("sqrt") || call.is_call("log") || call.is_call("acosh");
    if (MISTAKE == 6 && is_offset && call.type().is<float>() && call.type().is_static()) return yes();
    const bool is_double = call.type().dtype.bits == 64;
    if (call.is_call("nn.upsampling") && MISTAKE != 2 && call.type().is_static()) return yes();
    if (call.is_call("nn.conv2d") && MISTAKE == 2 && is_double && call.type().is_static()) return yes();
    return no("the chip does not compute this");
  }

  void compile_step(const Node& node, const Request&, Writer& out) const override {
    if (MISTAKE == 5) throw std::runtime_error("the chip is too small");
    if (MISTAKE == 6) {
      out.put(node.type().num_elements());
      out.put_text(node.op());
      return;
    }
    out.put(size_of(node.type()));
    out.put(static_cast<int64_t>(node.num_operands()));
  }

  std::unique_ptr<Kernel> load_step(Reader& in) const override {
    if (MISTAKE == 4) throw std::runtime_error("the chip is cold");
    if (MISTAKE == 6) {
      auto made = std::make_unique<OffByABit>();
      made->count = in.get<int64_t>();
      made->op = in.get_text();
      return made;
    }
    auto made = std::make_unique<Zeros>();
    made->size = in.get<int64_t>();
    made->output = static_cast<size_t>(in.get<int64_t>());
    return made;
  }
};

}  // namespace

HEADRACE_BACKEND(Mistakes)
