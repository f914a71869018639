// AssignLayout: which convolutions get blocks of channels, where layouts change, and that results stay.
#include "passes/layout/assign_layout.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "kit/property.h"
#include "passes/tests/golden_pass.h"
#include "passes/tests/random_programs.h"

namespace headrace::passes {
namespace {

using ::testing::HasSubstr;

// Arithmetic is so slow here that blocks are worth any change of layout.
constexpr cost::Machine kSlowArithmetic{.gigahertz = 1e-4};
// Memory is so slow here that no change of layout is worth it.
constexpr cost::Machine kSlowMemory{.l2_gigabytes = 1e-3, .l3_gigabytes = 1e-3, .dram_gigabytes = 1e-3};

// Weights that differ from each other, made of constants: a multiple of seven elements has the same value again.
std::string weight(const Shape& shape) {
  const int64_t count = num_elements(shape);
  return fmt::format(
      "reshape(multiply(subtract(mod(arange(0f, {}f, 1f, dtype=\"float32\"), 7f), 3f), {:.4f}f), "
      "newshape=[{}])",
      count, 1.0 / static_cast<double>(num_elements(shape) / shape[0]), fmt::join(shape, ", "));
}

std::string conv(const std::string& data, const Shape& kernel, const std::string& more = "") {
  return fmt::format("nn.conv2d({}, {}{})", data, weight(kernel), more);
}

IRModule assigned(const std::string& body, const cost::Machine& machine = kSlowArithmetic, int64_t channels = 16) {
  const IRModule before =
      read(fmt::format("def @main(%x: Tensor[(1, {}, 6, 6), float32]) {{\n  {}\n}}", channels, body));
  const IRModule after = relay::infer_type(assign_layout(before, machine));
  kit::Random random(3);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-4);
  return after;
}

std::string text_of(const IRModule& module) { return relay::print_module(module); }

TEST(AssignLayout, ChainsStayInBlocks) {
  const IRModule after = assigned(conv("nn.relu(" + conv("%x", {16, 16, 3, 3}) + ")", {8, 16, 1, 1}));
  EXPECT_THAT(text_of(after), HasSubstr("data_layout=\"NCHW8c\", kernel_layout=\"OIHW8i8o\""));
  EXPECT_EQ(count_calls(after, "layout_transform"), 3) << "of two kernels and the result" << text_of(after);
}

// No block divides the 3 channels of an image: the convolution reads them as written and writes blocks.
TEST(AssignLayout, ImagesArePackedByTheirConvolution) {
  const IRModule after = assigned(conv("nn.relu(" + conv("%x", {8, 3, 3, 3}) + ")", {16, 8, 1, 1}), kSlowArithmetic, 3);
  EXPECT_THAT(text_of(after), HasSubstr("kernel_layout=\"OIHW8o\", out_layout=\"NCHW8c\""));
  EXPECT_EQ(count_calls(after, "layout_transform"), 3) << "of two kernels and the result" << text_of(after);
}

// 15 channels are two blocks of 8 but for one channel of zeros; 12 would have too many.
TEST(AssignLayout, ChannelsAreNearlyWholeBlocks) {
  const IRModule after = assigned("nn.relu(" + conv("%x", {15, 16, 3, 3}) + ")");
  EXPECT_THAT(text_of(after), HasSubstr("pad_width=[[0, 1], [0, 0], [0, 0], [0, 0]]"));
  EXPECT_THAT(text_of(after), HasSubstr("strided_slice("));
  EXPECT_THAT(text_of(after), HasSubstr("channels=16"));
}

TEST(AssignLayout, DepthwiseConvolutionsFollow) {
  const IRModule after = assigned(conv(conv("%x", {16, 16, 1, 1}), {16, 1, 3, 3}, ", groups=16"));
  EXPECT_THAT(text_of(after), HasSubstr("kernel_layout=\"OIHW1i8o\""));
}

// A value is transformed back once, however many of its readers need the layout as written.
TEST(AssignLayout, ChangesAreShared) {
  const IRModule after = assigned("%0 = " + conv("%x", {16, 16, 3, 3}) +
                                  ";\n  (nn.softmax(%0, axis=1), nn.log_softmax(%0, axis=1), nn.relu(%0))");
  EXPECT_LE(count_calls(after, "layout_transform"), 4) << text_of(after);
}

class StaysAsWritten : public testing::TestWithParam<const char*> {};

TEST_P(StaysAsWritten, Program) {
  const IRModule before = read(GetParam());
  EXPECT_EQ(text_of(assign_layout(before, kSlowArithmetic)), text_of(before));
}

INSTANTIATE_TEST_SUITE_P(
    AssignLayout, StaysAsWritten,
    testing::Values(
        // a kernel that each run would pack
        "def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 1, 1), float32]) { nn.conv2d(%x, %w) }",
        // channels that no block divides
        "def @main(%x: Tensor[(1, 8, 6, 6), float32]) { nn.conv2d(%x, ones(shape=[12, 8, 1, 1], dtype=\"float32\")) }",
        // no channels
        "def @main(%x: Tensor[(1, 8, 6, 6), float32]) { nn.conv2d(%x, zeros(shape=[0, 8, 1, 1], dtype=\"float32\")) }",
        // groups of several channels
        "def @main(%x: Tensor[(1, 16, 6, 6), float32]) {\n"
        "  nn.conv2d(%x, ones(shape=[16, 8, 1, 1], dtype=\"float32\"), groups=2) }",
        // other dtypes
        "def @main(%x: Tensor[(1, 8, 6, 6), float16]) { nn.conv2d(%x, ones(shape=[8, 8, 1, 1], dtype=\"float16\")) }",
        "def @main(%x: Tensor[(1, 8, 6, 6), int8]) {\n"
        "  nn.conv2d(%x, ones(shape=[8, 8, 1, 1], dtype=\"int8\"), out_dtype=\"int32\") }",
        // an unknown size
        "def @main(%x: Tensor[(n, 8, 6, 6), float32]) { nn.conv2d(%x, ones(shape=[8, 8, 1, 1], dtype=\"float32\")) }",
        // a layout that the program chose
        "def @main(%x: Tensor[(1, 6, 6, 8), float32]) {\n"
        "  nn.conv2d(%x, ones(shape=[1, 1, 8, 8], dtype=\"float32\"), data_layout=\"NHWC\", kernel_layout=\"HWIO\") }",
        // no convolution
        "def @main(%x: Tensor[(1, 8, 6, 6), float32]) { nn.relu(%x) }"));

// A convolution whose data and weight are both made of constants is not in the problem; its result is read as written.
TEST(AssignLayout, ConvolutionsOfConstantsAloneStayAsWritten) {
  for (const char* made : {"nn.conv2d(ones(shape=[1, 16, 6, 6]), ones(shape=[16, 16, 3, 3]), padding=[1, 1])",
                           "nn.conv2d(ones(shape=[1, 16, 6, 6]), ones(shape=[16, 1, 3, 3]), padding=[1, 1], groups=16, "
                           "channels=16, kernel_size=[3, 3])"}) {
    EXPECT_EQ(count_calls(assigned(fmt::format("add(%x, {})", made)), "layout_transform"), 0) << made;
    EXPECT_EQ(count_calls(assigned(conv(fmt::format("add(%x, {})", made), {8, 16, 3, 3})), "layout_transform"), 2)
        << "of the other kernel and the result: " << made;
  }
}

TEST(AssignLayout, ChangesThatCostMoreThanTheyBringAreNotMade) {
  const std::string body = conv("%x", {16, 16, 1, 1});
  EXPECT_EQ(count_calls(assigned(body, kSlowMemory), "layout_transform"), 0);
  EXPECT_EQ(count_calls(assigned(body, kSlowArithmetic), "layout_transform"), 2) << "of the kernel and the result";
}

// The first two convolutions wait for memory in every form, and the third is worth a change of layout. Wherever the
// blocks begin, there is one change; all three are in blocks, because kernels in blocks have less arithmetic to do.
TEST(AssignLayout, FormsThatWaitForMemoryAreInBlocks) {
  constexpr cost::Machine kBalanced{
      .gigahertz = 1, .l2_gigabytes = 1.28, .call_seconds = 0, .plain_conv_share = 0.3};  // 25 operations a byte
  const std::string body =
      conv(conv(conv("%x", {16, 3, 3, 3}, ", padding=[1, 1]"), {16, 16, 1, 1}), {16, 16, 3, 3}, ", padding=[1, 1]");
  const std::string text = text_of(assigned(body, kBalanced, 3));
  EXPECT_THAT(text, HasSubstr("kernel_layout=\"OIHW8o\", out_layout=\"NCHW8c\""));
  int blocked = 0;
  for (size_t at = text.find("kernel_layout="); at != std::string::npos; at = text.find("kernel_layout=", at + 1))
    ++blocked;
  EXPECT_EQ(blocked, 3) << text;
}

TEST(AssignLayout, BlocksHaveTheLanesOfTheMachine) {
  const std::string body = conv("%x", {16, 16, 1, 1});
  const cost::Machine wide{.vector_bits = 512, .gigahertz = 1e-4}, narrow{.vector_bits = 128, .gigahertz = 1e-4};
  EXPECT_THAT(text_of(assigned(body, wide)), HasSubstr("NCHW16c"));
  EXPECT_EQ(count_calls(assigned(body, narrow), "layout_transform"), 0);
}

TEST(AssignLayout, BlocksAreChecked) {
  pass::PassContext context = typed_context();
  context.config.set("relay.AssignLayout.block", Value(int64_t{12}));
  const IRModule module = read("def @main(%x: Tensor[(1, 8, 6, 6), float32]) { nn.relu(%x) }");
  EXPECT_THAT(kit::user_error_of([&] { run_pass("AssignLayout", module, context); }),
              HasSubstr("relay.AssignLayout.block is 12; it is 8, 16, or 0 (that of the machine)"));
}

// Writes networks of convolutions and ops that follow them, or do not, over tensors of 6 x 6.
class NetWriter {
 public:
  explicit NetWriter(kit::Random& random) : random_(random) {}

  std::string write() {
    channels_ = {random_.chance(0.5F) ? 3 : 16};
    std::string text =
        fmt::format("def @main(%x: Tensor[(1, {}, 6, 6), float32]) {{\n  %0 = nn.relu(%x);\n", channels_[0]);
    for (int64_t left = random_.integer(2, 8); left > 0; --left) {
      text += fmt::format("  %{} = {};\n", channels_.size(), call());
      channels_.push_back(next_);
    }
    return text + fmt::format("  (%{}, %{})\n}}\n", channels_.size() - 1, random_.index(channels_.size()));
  }

 private:
  std::string call() {
    static constexpr int64_t kChannels[] = {3, 8, 12, 15, 16, 23, 24};
    const size_t from = channels_.size() - 1 - random_.index(std::min<size_t>(channels_.size(), 3));
    const std::string data = fmt::format("%{}", from);
    const int64_t channels = next_ = channels_[from];
    switch (random_.index(9)) {
      case 0:
      case 1:
      case 2:
        next_ = kChannels[random_.index(7)];
        return random_.chance(0.5F) ? conv(data, {next_, channels, 1, 1})
                                    : conv(data, {next_, channels, 3, 3}, ", padding=[1, 1]");
      case 3:
        return conv(data, {channels, 1, 3, 3}, fmt::format(", padding=[1, 1], groups={}", channels));
      case 4:
        return fmt::format("nn.softmax({}, axis={})", data, random_.integer(1, 3));
      case 5:
        return fmt::format("nn.max_pool2d({}, pool_size=[3, 3], padding=[1, 1])", data);
      case 6: {
        const size_t other = random_.index(channels_.size());
        next_ = channels + channels_[other];
        return fmt::format("concatenate(({}, %{}), axis=1)", data, other);
      }
      case 7: {
        const size_t other = random_.index(channels_.size());
        return channels_[other] == channels ? fmt::format("add({}, %{})", data, other)
                                            : fmt::format("nn.bias_add({}, {})", data, weight({channels}));
      }
      default:
        return fmt::format("multiply({}, nn.global_avg_pool2d({}))", data, data);
    }
  }

  kit::Random& random_;
  std::vector<int64_t> channels_;  // channels of each value
  int64_t next_ = 0;
};

TEST(AssignLayout, RandomNetworksKeepTheirResults) {
  struct Net {
    std::string text;
    uint64_t seed = 0;
  };
  kit::Property<Net> property;
  property.runs_ci = 150;
  property.runs_full = 5000;
  property.generate = [](kit::Random& random) {
    Net net{.text = NetWriter(random).write()};
    net.seed = random.next();
    return net;
  };
  property.show = [](const Net& net) { return net.text; };
  int changed = 0, runs = 0;
  property.check = [&](const Net& net) -> std::optional<std::string> {
    const IRModule before = read(net.text), after = relay::infer_type(assign_layout(before, kSlowArithmetic));
    relay::verify(after);
    ++runs;
    changed += count_calls(after, "layout_transform") > 0 ? 1 : 0;
    if (auto failure = results_differ(before, after, net.seed, 1e-3)) return *failure + "\nafter:\n" + text_of(after);
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  if (!kit::options().seed) {
    EXPECT_GE(changed * 4, runs) << changed << " of " << runs << " networks have blocks";
  }
}

}  // namespace
}  // namespace headrace::passes
