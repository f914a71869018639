// A backend in one file of C++: convolutions of one image with their bias and relu, by plain loops.
//
//     c++ -std=c++17 -shared -fPIC -O2 -I HEADERS plugin.cc -o libconvs_cpp.so
//     headrace compile model.onnx --plugin ./libconvs_cpp.so --backends convs_cpp -o model.so
//
// HEADERS holds headrace/ and dlpack/. ../byoc-plugin/plugin.c is the same on the bare C interface.
#include <headrace/backend_steps.hpp>

using namespace headrace::plugin;

struct Layer {
  int64_t c, h, w, k, p, q, r, s, stride_h, stride_w, top, left, has_relu;
};

// A convolution x[c, h, w] -> y[k, p, q], with weights[k, c, r, s] and bias[k].
struct Convolution : Kernel {
  explicit Convolution(Reader& in)
      : l(in.get<Layer>()), weights(in.get_constant<float>(l.k * l.c * l.r * l.s)), bias(in.get_constant<float>(l.k)) {}
  const Layer l;
  const Span<float> weights, bias;

  void run(const Call& call) const override {
    call.parallel_for(l.k * l.p * l.q, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) call.data<float>(1)[i] = element(call.data<float>(0), i);
    });
  }

  float element(const float* x, int64_t i) const {
    const int64_t k = i / (l.p * l.q), p = i / l.q % l.p, q = i % l.q;
    float sum = bias[size_t(k)];
    for (int64_t j = 0; j < l.c * l.r * l.s; ++j) {
      const int64_t c = j / (l.r * l.s), h = p * l.stride_h - l.top + j / l.s % l.r,
                    w = q * l.stride_w - l.left + j % l.s;
      if (h >= 0 && w >= 0 && h < l.h && w < l.w)
        sum += x[(c * l.h + h) * l.w + w] * weights[size_t(k * l.c * l.r * l.s + j)];
    }
    return l.has_relu != 0 && sum < 0 ? 0 : sum;
  }
};

// The bias is the second operand of nn.bias_add, and either one of add.
Node sum_of(const Graph& match) { return match.call(match.has_call("add") ? "add" : "nn.bias_add"); }
Node bias_of(const Graph& match) { return sum_of(match).operand(sum_of(match).operand(0).is_const() ? 0 : 1); }

class Convs : public StepBackend {
  std::string name() const override { return "convs_cpp"; }
  bool one_call_per_region() const override { return true; }

  std::string patterns() const override {
    const std::string operands = "(nn.conv2d(_, const)[attrs groups=1, dilation=[1, 1]], const)";
    const std::string biased = "(add" + operands + " or nn.bias_add" + operands + "[attrs axis=1])";
    return "{ convs_cpp.conv_relu: nn.relu(" + biased + "), convs_cpp.conv: " + biased + " }";
  }

  Verdict accepts(const std::string&, const Graph& match) const override {
    const Node conv = match.call("nn.conv2d");
    const TensorType x = conv.operand(0).type(), bias = bias_of(match).type();
    if (!x.is<float>() || !x.is_static() || x.shape[0] != 1) return no("its data is not one float32 image");
    // A pattern leaves open what its attributes do not name. An empty out_layout is that of the data.
    const auto text = [&](const char* attribute) { return conv.attr(attribute).text(); };
    const std::string layouts = text("data_layout") + text("kernel_layout") + text("out_layout");
    if (layouts != "NCHWOIHW" && layouts != "NCHWOIHWNCHW") return no("its layouts are not NCHW and OIHW");
    const std::vector<int64_t> per_channel{conv.type().shape[1], 1, 1};
    return bias.shape == per_channel || match.has_call("nn.bias_add") ? yes() : no("its bias is not per channel");
  }

  void compile_step(const Node& node, const Request&, Writer& out) const override {
    const Node conv = node.body().call("nn.conv2d"), weights = conv.operand(1);
    const auto x = conv.operand(0).type().shape, k = weights.type().shape, y = conv.type().shape;
    const auto strides = conv.attr("strides").integers(), pads = conv.attr("padding").integers();
    out.put(Layer{x[1], x[2], x[3], y[1], y[2], y[3], k[2], k[3], strides[0], strides[1], pads[0], pads[1],
                  node.is_composite("convs_cpp.conv_relu")});
    out.put_constant(weights);
    out.put_constant(bias_of(node.body()));
  }

  std::unique_ptr<Kernel> load_step(Reader& in) const override { return std::make_unique<Convolution>(in); }
};

HEADRACE_BACKEND(Convs)
