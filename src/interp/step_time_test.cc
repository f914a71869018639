// Tests that a step of an op's evaluation takes about as long as EvalWork says, so that a budget of steps limits time.
#include <gtest/gtest.h>

#include <ctime>

#include "interp/interp.h"
#include "kit/options.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::interp {
namespace {

// Calls whose loops are longer than their operands and results are large. Each takes more steps than the limit.
constexpr const char* kLongCalls[] = {
    "nn.conv2d(ones(shape=[1, 16, 64, 64]), ones(shape=[16, 16, 5, 5]))",
    "nn.conv2d(ones(shape=[1, 4, 200, 200]), ones(shape=[4, 4, 1, 1]))",
    "nn.conv3d(ones(shape=[1, 4, 20, 20, 20]), ones(shape=[8, 4, 3, 3, 3]))",
    "nn.conv2d_transpose(ones(shape=[1, 16, 32, 32]), ones(shape=[16, 16, 3, 3]))",
    "nn.conv2d_backward_weight(ones(shape=[1, 8, 32, 32]), ones(shape=[1, 8, 32, 32]), kernel_size=[3, 3], "
    "padding=[1, 1], channels=8)",
    "nn.deformable_conv2d(ones(shape=[1, 8, 32, 32]), ones(shape=[1, 18, 30, 30]), ones(shape=[16, 8, 3, 3]), "
    "kernel_size=[3, 3])",
    "nn.correlation(ones(shape=[1, 8, 32, 32]), ones(shape=[1, 8, 32, 32]), kernel_size=3, max_displacement=4, "
    "stride1=1, stride2=1, padding=[5, 5, 5, 5], is_multiply=True, layout=\"NCHW\")",
    "image.dilation2d(ones(shape=[1, 4, 128, 128]), ones(shape=[4, 9, 9]), data_layout=\"NCHW\", "
    "kernel_layout=\"IHW\")",
    "nn.max_pool2d(ones(shape=[1, 4, 128, 128]), pool_size=[9, 9])",
    "nn.avg_pool2d(ones(shape=[1, 4, 128, 128]), pool_size=[9, 9])",
    "nn.max_pool2d(ones(shape=[1, 4, 200, 200]), pool_size=[1, 1])",
    "nn.adaptive_avg_pool2d(ones(shape=[1, 4, 256, 256]), output_size=[7, 7])",
    "nn.lrn(ones(shape=[1, 512, 32, 32]), size=9)",
    "nn.dense(ones(shape=[200, 300]), ones(shape=[200, 300]))",
    "nn.batch_matmul(ones(shape=[4, 100, 100]), ones(shape=[4, 100, 100]))",
    "nn.bitserial_dense(ones(shape=[200, 300], dtype=\"int16\"), ones(shape=[200, 300], dtype=\"int16\"))",
    "nn.bitserial_conv2d(ones(shape=[1, 16, 32, 32], dtype=\"uint8\"), ones(shape=[16, 16, 3, 3], dtype=\"uint8\"), "
    "kernel_size=[3, 3], channels=16)",
    "nn.bitpack(ones(shape=[256, 1024], dtype=\"int32\"), pack_axis=1, bit_axis=2)",
    "einsum((ones(shape=[80, 80]), ones(shape=[80, 80]), ones(shape=[80, 80])), equation=\"ab,bc,cd->ad\")",
    "dft(ones(shape=[4, 1000]), zeros(shape=[4, 1000])).0",
    "stft(ones(shape=[1, 20000]), ones(shape=[512]), n_fft=512, hop_length=64, win_length=512, normalized=False, "
    "onesided=True)",
    "image.resize2d(ones(shape=[1, 1, 16, 16]), size=[512, 512], layout=\"NCHW\", method=\"cubic\")",
    "image.grid_sample(ones(shape=[1, 4, 64, 64]), zeros(shape=[1, 2, 512, 512]))",
    "nn.global_avg_pool2d(ones(shape=[1, 4, 256, 256]))",
    "sort(tile(arange(0f, 1000f, 1f, dtype=\"float32\"), reps=[300]))",
    "argsort(tile(arange(0f, 1000f, 1f, dtype=\"float32\"), reps=[300]))",
    "unique(tile(arange(0f, 1000f, 1f, dtype=\"float32\"), reps=[300])).0",
    "topk(tile(arange(0f, 1000f, 1f, dtype=\"float32\"), reps=[300]), k=10).0",
    "cumsum(ones(shape=[300000]), axis=0)",
    "nn.softmax(ones(shape=[150, 2000]))",
    "nn.layer_norm(ones(shape=[150, 2000]), ones(shape=[2000]), ones(shape=[2000]))",
    "erf(ones(shape=[150, 2000]))",
    "power(ones(shape=[150, 2000]), ones(shape=[2000]))",
    "cast(ones(shape=[150, 2000]), dtype=\"float16\")",
    "sum(ones(shape=[150, 2000], dtype=\"float16\"))",
    "transpose(ones(shape=[150, 2000]))",
    "one_hot(zeros(shape=[500], dtype=\"int32\"), 1f, 0f, depth=1000, axis=-1, dtype=\"float32\")",
    "take(ones(shape=[1000]), zeros(shape=[300000], dtype=\"int32\"), axis=0)",
    "gather(ones(shape=[150, 2000]), zeros(shape=[150, 2000], dtype=\"int32\"), axis=0)",
    "scatter_elements(ones(shape=[200, 1000]), zeros(shape=[200, 1000], dtype=\"int32\"), ones(shape=[200, 1000]), "
    "axis=0, reduction=\"add\")",
    "nn.pad(ones(shape=[300, 300]), 0f, pad_width=[[200, 200], [200, 200]])",
    "strided_slice(ones(shape=[300, 1000]), begin=[0, 0], end=[300, 1000], strides=[1, 1], axes=[0, 1])",
    "sliding_window(ones(shape=[3000]), axis=0, window_shape=[300], strides=[1])",
};

constexpr int64_t kStepLimit = 1'000'000;

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the nanoseconds of processor time that a step of the call takes.
double step_nanoseconds(const char* call) {
  ops::register_all_ops();
  const IRModule module = relay::infer_type(
      relay::parse_module(fmt::format("#[version = \"0.0.5\"]\ndef @main() {{ {} }}\n", call), "call.relay"));
  const Expr body = module->lookup("main").cast<relay::FunctionNode>()->body;
  ops::EvalWork work({.steps = kStepLimit});
  const double begin = cpu_seconds();
  try {
    run_expr(body, {.work = &work});
  } catch (const ops::WorkLimitReached&) {  // stopped within the loop
  }
  const double seconds = cpu_seconds() - begin;
  // A call that is counted before it begins takes no time; those here are not.
  EXPECT_GE(work.steps(), kStepLimit / 2) << call;
  return 1e9 * seconds / static_cast<double>(std::min(work.steps(), kStepLimit));
}

TEST(StepTime, AStepTakesAFewNanoseconds) {
  if (kit::options().size == kit::TestSize::kFew) GTEST_SKIP() << "sanitized builds are several times slower";
  // It takes up to 25, and up to 60 on slow machines that other programs share. Work that is not counted, such as the
  // elements of a window, makes it hundreds.
  constexpr double kMost = 150;
  for (const char* call : kLongCalls) {
    double least = step_nanoseconds(call);
    for (int again = 0; again < 3 && least > kMost; ++again) least = std::min(least, step_nanoseconds(call));
    EXPECT_LE(least, kMost) << call;
  }
}

}  // namespace
}  // namespace headrace::interp
