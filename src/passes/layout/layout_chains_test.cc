// Holds ConvertLayout to its property over chains of ops that a layout goes through, each with attributes that name
// axes: a convolution in another layout, then some of them over axes and bounds that chance chooses.
#include <numeric>

#include "passes/layout/convert_layout.h"
#include "passes/tests/random_programs.h"

namespace headrace::passes {
namespace {

struct Chain {
  std::string text;
  std::string layout;
  uint64_t seed = 0;
};

// Writes statements over a tensor of four axes, whose shape it follows.
class ChainWriter {
 public:
  explicit ChainWriter(kit::Random& random) : random_(random) {}

  std::string write() {
    text_ =
        "def @main(%x: Tensor[(2, 4, 4, 6), float32], %w: Tensor[(8, 4, 1, 1), float32]) {\n"
        "  %0 = nn.conv2d(%x, %w);\n";
    for (int64_t left = random_.integer(1, 4); left > 0; --left) step();
    return text_ + "  " + last() + "\n}\n";
  }

 private:
  size_t any_axis() { return random_.index(4); }
  // As users may write it: counted from the end, too.
  int64_t written(size_t axis) { return static_cast<int64_t>(axis) - (random_.chance(0.3F) ? 4 : 0); }
  std::string here() const { return fmt::format("%{}", number_); }
  void add(const std::string& call) { text_ += fmt::format("  %{} = {};\n", ++number_, call); }

  std::string vector(int64_t size) {
    std::vector<std::string> values;
    for (int64_t i = 0; i < size; ++i) values.push_back(fmt::format("{:.2f}", random_.uniform(0.5F, 1.5F)));
    return fmt::format("const(Tensor[({}), float32], [{}])", size, fmt::join(values, ", "));
  }

  // One or more axes, none twice.
  std::vector<int64_t> axes() {
    std::vector<int64_t> chosen;
    for (size_t axis = 0; axis < 4; ++axis) {
      if (random_.chance(0.4F)) chosen.push_back(static_cast<int64_t>(axis));
    }
    if (chosen.empty()) chosen.push_back(static_cast<int64_t>(any_axis()));
    return chosen;
  }

  void step() {
    const size_t axis = any_axis();
    const int64_t size = shape_[axis];
    switch (random_.index(10)) {
      case 0:
        return add(fmt::format("nn.relu({})", here()));
      case 1: {
        const std::string v = vector(size);
        const std::string call =
            fmt::format("nn.batch_norm({}, {}, {}, {}, {}, axis={})", here(), v, v, v, v, written(axis));
        return add(call + ".0");
      }
      case 2:
        return add(fmt::format("nn.l2_normalize({}, eps=0.1f, axis=[{}])", here(), fmt::join(axes(), ", ")));
      case 3:
        return random_.chance(0.5F) ? slice_of_each() : slice_of_one(axis);
      case 4:
        return split(axis);
      case 5: {
        static constexpr const char* kOps[] = {"reverse", "sort", "cumsum"};
        return add(fmt::format("{}({}, axis={})", kOps[random_.index(3)], here(), written(axis)));
      }
      case 6:
        return transpose();
      case 7: {
        const std::vector<int64_t> reduced = axes();
        add(fmt::format("{}({}, axis=[{}], keepdims=True)", random_.chance(0.5F) ? "mean" : "max", here(),
                        fmt::join(reduced, ", ")));
        for (const int64_t one : reduced) shape_[static_cast<size_t>(one)] = 1;
        return;
      }
      case 8:
        add(fmt::format("concatenate(({}, {}), axis={})", here(), here(), axis));
        shape_[axis] *= 2;
        return;
      default:
        return add(fmt::format("nn.bias_add({}, {}, axis={})", here(), vector(size), written(axis)));
    }
  }

  // Begins, ends and strides of the first axes.
  void slice_of_each() {
    std::vector<int64_t> begins, ends, strides;
    const auto count = static_cast<size_t>(random_.integer(1, 4));
    for (size_t axis = 0; axis < count; ++axis) {
      const int64_t begin = random_.integer(0, shape_[axis] - 1), end = random_.integer(begin + 1, shape_[axis]);
      begins.push_back(begin);
      ends.push_back(end == shape_[axis] && random_.chance(0.5F) ? 1000 : end);
      strides.push_back(random_.integer(1, 2));
      shape_[axis] = (end - begin + strides.back() - 1) / strides.back();
    }
    add(fmt::format("strided_slice({}, begin=[{}], end=[{}], strides=[{}])", here(), fmt::join(begins, ", "),
                    fmt::join(ends, ", "), fmt::join(strides, ", ")));
  }

  void slice_of_one(size_t axis) {
    const int64_t size = shape_[axis], begin = random_.integer(0, size - 1), end = random_.integer(begin + 1, size);
    const int64_t shown = begin - (random_.chance(0.3F) ? size : 0);
    add(fmt::format("strided_slice({}, begin=[{}], end=[{}], axes=[{}])", here(), shown, end, written(axis)));
    shape_[axis] = end - begin;
  }

  void split(size_t axis) {
    const int64_t size = shape_[axis];
    if (size == 1) return add(fmt::format("nn.relu({})", here()));
    if (size % 2 == 0 && random_.chance(0.5F)) {
      add(fmt::format("split({}, indices_or_sections=2, axis={}).{}", here(), written(axis), random_.index(2)));
      shape_[axis] = size / 2;
      return;
    }
    const int64_t at = random_.integer(1, size - 1);
    const bool is_first = random_.chance(0.5F);
    add(fmt::format("split({}, indices_or_sections=[{}], axis={}).{}", here(), at, written(axis), is_first ? 0 : 1));
    shape_[axis] = is_first ? at : size - at;
  }

  void transpose() {
    std::vector<size_t> order{0, 1, 2, 3};
    for (size_t i = 3; i > 0; --i) std::swap(order[i], order[random_.index(i + 1)]);
    add(fmt::format("transpose({}, axes=[{}])", here(), fmt::join(order, ", ")));
    const std::vector<int64_t> before = shape_;
    for (size_t i = 0; i < 4; ++i) shape_[i] = before[order[i]];
  }

  std::string last() {
    const size_t axis = any_axis();
    switch (random_.index(6)) {
      case 0:
        return fmt::format("sum({}, axis=[{}])", here(), fmt::join(axes(), ", "));
      case 1:
        return fmt::format("max({}, axis=[{}], exclude=True)", here(), axis);
      case 2:
        return fmt::format("topk({}, k=1, axis={}, ret_type=\"values\")", here(), written(axis));
      case 3:
        return shape_[axis] == 1 ? fmt::format("squeeze({}, axis=[{}])", here(), written(axis)) : here();
      case 4:
        return fmt::format("slice_like({}, nn.relu({}), axes=[{}])", here(), here(), axis);
      default:
        return here();
    }
  }

  kit::Random& random_;
  std::vector<int64_t> shape_{2, 8, 4, 6};
  std::string text_;
  int number_ = 0;
};

TEST(ConvertLayout, ChainsOverAxesKeepTheResults) {
  kit::Property<Chain> property;
  property.runs_ci = 400;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    static constexpr const char* kLayouts[] = {"NHWC", "CHWN", "HWNC", "NCHW4c", "NCHW8c", "NCHW2c"};
    Chain chain{.text = ChainWriter(random).write(), .layout = kLayouts[random.index(6)]};
    chain.seed = random.next();
    return chain;
  };
  property.show = [](const Chain& chain) { return chain.layout + "\n" + chain.text; };
  int through = 0, runs = 0;
  property.check = [&](const Chain& chain) -> std::optional<std::string> {
    DesiredLayouts desired;
    desired.set("nn.conv2d", Array<std::string>{chain.layout});
    pass::PassContext context = typed_context();
    context.config.set("relay.ConvertLayout.desired_layouts", Value(desired));
    const IRModule before = read(chain.text), after = run_pass("ConvertLayout", before, context);
    ++runs;
    // The transforms of the convolution's data, weights and result, where the last is not right behind it.
    const std::string text = relay::print_module(after);
    const size_t conv = text.find("nn.conv2d"), next = text.find('\n', conv) + 1;
    through += text.substr(next, text.find('\n', next) - next).find("layout_transform") == std::string::npos ? 1 : 0;
    if (auto failure = results_differ(before, after, chain.seed, 1e-3)) return *failure + "\nafter:\n" + text;
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed) {
    EXPECT_GE(through * 2, runs) << through << " of " << runs << " chains have the layout behind the convolution";
  }
}

}  // namespace
}  // namespace headrace::passes
