// A backend for tests that computes nn.pad of float32: the attribute pad_width is a list of lists.
#include <headrace/backend_steps.hpp>

#include <algorithm>

namespace {

using namespace headrace::plugin;

struct Pad : Kernel {
  std::vector<int64_t> sizes, before, padded;  // by axis
  float value = 0;

  void run(const Call& call) const override {
    const float* x = call.data<float>(0);
    float* y = call.data<float>(call.num_tensors() - 1);
    const auto count = [](const std::vector<int64_t>& dims) {
      int64_t product = 1;
      for (const int64_t dim : dims) product *= dim;
      return product;
    };
    std::fill_n(y, count(padded), value);
    for (int64_t i = 0; i < count(sizes); ++i) y[place_of(i)] = x[i];
  }

 private:
  // Returns where element `i` of the input is in the result.
  int64_t place_of(int64_t i) const {
    int64_t place = 0, stride = 1;
    for (size_t axis = sizes.size(); axis-- > 0;) {
      place += (i % sizes[axis] + before[axis]) * stride;
      i /= sizes[axis];
      stride *= padded[axis];
    }
    return place;
  }
};

class Pads : public StepBackend {
  std::string name() const override { return "pads"; }

  Verdict supports(const Node& call) const override {
    if (!call.is_call("nn.pad")) return no("it computes nn.pad only");
    if (call.attr("pad_mode").text() != "constant") return no("it pads by a constant only");
    if (!call.operand(1).is_const()) return no("it pads by a value that is known");
    return call.type().is<float>() && call.type().is_static() ? yes() : no("it takes float32 of known sizes");
  }

  void compile_step(const Node& node, const Request&, Writer& out) const override {
    out.put_all(node.operand(0).type().shape);
    out.put_all(node.type().shape);
    std::vector<int64_t> before;
    for (const Attr& axis : node.attr("pad_width").items()) before.push_back(axis.items().at(0).integer());
    out.put_all(before);
    out.put(node.operand(1).constant<float>()[0]);
  }

  std::unique_ptr<Kernel> load_step(Reader& in) const override {
    auto pad = std::make_unique<Pad>();
    pad->sizes = in.get_all<int64_t>();
    pad->padded = in.get_all<int64_t>();
    pad->before = in.get_all<int64_t>();
    pad->value = in.get<float>();
    return pad;
  }
};

}  // namespace

HEADRACE_BACKEND(Pads)
