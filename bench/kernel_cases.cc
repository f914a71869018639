#include "bench/kernel_cases.h"

#include <fmt/format.h>

namespace headrace::bench {

namespace {

constexpr int64_t kFloatBytes = 4;

struct Conv {
  const char* name;
  int64_t in_channels, size, out_channels, taps, stride = 1, groups = 1;
};

constexpr Conv kConvs[] = {
    {.name = "stem 7x7/2 3-64 @224", .in_channels = 3, .size = 224, .out_channels = 64, .taps = 7, .stride = 2},
    {.name = "3x3 64-64 @56", .in_channels = 64, .size = 56, .out_channels = 64, .taps = 3},
    {.name = "3x3 128-128 @28", .in_channels = 128, .size = 28, .out_channels = 128, .taps = 3},
    {.name = "3x3 256-256 @14", .in_channels = 256, .size = 14, .out_channels = 256, .taps = 3},
    {.name = "3x3 512-512 @7", .in_channels = 512, .size = 7, .out_channels = 512, .taps = 3},
    {.name = "1x1 64-256 @56", .in_channels = 64, .size = 56, .out_channels = 256, .taps = 1},
    {.name = "1x1 256-64 @56", .in_channels = 256, .size = 56, .out_channels = 64, .taps = 1},
    {.name = "1x1/2 256-512 @56", .in_channels = 256, .size = 56, .out_channels = 512, .taps = 1, .stride = 2},
    {.name = "1x1 512-2048 @7", .in_channels = 512, .size = 7, .out_channels = 2048, .taps = 1},
    {.name = "1x1 160-960 @7", .in_channels = 160, .size = 7, .out_channels = 960, .taps = 1},
    {.name = "depthwise 3x3 144 @56", .in_channels = 144, .size = 56, .out_channels = 144, .taps = 3, .groups = 144},
    {.name = "depthwise 3x3/2 96 @112",
     .in_channels = 96,
     .size = 112,
     .out_channels = 96,
     .taps = 3,
     .stride = 2,
     .groups = 96},
    {.name = "depthwise 3x3 960 @7", .in_channels = 960, .size = 7, .out_channels = 960, .taps = 3, .groups = 960},
};

struct Dense {
  const char* name;
  int64_t rows, depth, columns;
};

constexpr Dense kDenses[] = {
    {"dense 1x2048x1000", 1, 2048, 1000},
    {"dense 1x4096x4096", 1, 4096, 4096},
    {"dense 128x768x768", 128, 768, 768},
    {"dense 128x768x3072", 128, 768, 3072},
};

KernelCase make_case(const Conv& conv) {
  const int64_t pad = (conv.taps - 1) / 2, out_size = (conv.size + 2 * pad - conv.taps) / conv.stride + 1;
  const int64_t depth = conv.in_channels / conv.groups;
  KernelCase result{.name = conv.name};
  result.program = fmt::format(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[(1, {0}, {1}, {1}), float32], %w: Tensor[({2}, {3}, {4}, {4}), float32]) {{\n"
      "  nn.conv2d(%x, %w, strides=[{5}, {5}], padding=[{6}, {6}, {6}, {6}], groups={7}, channels={2},\n"
      "            kernel_size=[{4}, {4}])\n"
      "}}\n",
      conv.in_channels, conv.size, conv.out_channels, depth, conv.taps, conv.stride, pad, conv.groups);
  const int64_t results = conv.out_channels * out_size * out_size,
                weights = conv.out_channels * depth * conv.taps * conv.taps;
  result.operations = 2.0 * static_cast<double>(results * depth * conv.taps * conv.taps);
  result.bytes = (conv.in_channels * conv.size * conv.size + weights + results) * kFloatBytes;
  return result;
}

KernelCase make_case(const Dense& dense) {
  KernelCase result{.name = dense.name};
  result.program = fmt::format(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[({0}, {1}), float32], %w: Tensor[({2}, {1}), float32]) {{\n"
      "  nn.dense(%x, %w, units={2})\n"
      "}}\n",
      dense.rows, dense.depth, dense.columns);
  result.operations = 2.0 * static_cast<double>(dense.rows * dense.depth * dense.columns);
  result.bytes = (dense.rows * dense.depth + dense.depth * dense.columns + dense.rows * dense.columns) * kFloatBytes;
  return result;
}

}  // namespace

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const Conv& conv : kConvs) cases.push_back(make_case(conv));
  for (const Dense& dense : kDenses) cases.push_back(make_case(dense));
  return cases;
}

}  // namespace headrace::bench
