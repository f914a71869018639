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

// Where the channels of a convolution's data and result lie: as written, or in blocks of one vector (AssignLayout).
enum class Form : uint8_t { plain, packs, blocked };

// The shapes of data and kernel as text, and the attributes that name their layouts.
struct ConvText {
  std::string data, kernel, layouts, name;
};

ConvText text_of(const Conv& conv, Form form, int64_t block) {
  const int64_t depth = conv.in_channels / conv.groups, taps = conv.taps, blocks = conv.out_channels / block;
  const std::string data = fmt::format("(1, {0}, {1}, {1})", conv.in_channels, conv.size);
  if (form == Form::plain)
    return {data, fmt::format("({0}, {1}, {2}, {2})", conv.out_channels, depth, taps), "", conv.name};
  if (form == Form::packs) {
    return {data, fmt::format("({0}, {1}, {2}, {2}, {3})", blocks, depth, taps, block),
            fmt::format(", kernel_layout=\"OIHW{0}o\", out_layout=\"NCHW{0}c\"", block),
            fmt::format("{} to NCHW{}c", conv.name, block)};
  }
  const int64_t inner = conv.groups == 1 ? block : 1;
  return {fmt::format("(1, {0}, {1}, {1}, {2})", conv.in_channels / block, conv.size, block),
          fmt::format("({0}, {1}, {2}, {2}, {3}, {4})", blocks, depth / inner, taps, inner, block),
          fmt::format(", data_layout=\"NCHW{0}c\", kernel_layout=\"OIHW{1}i{0}o\"", block, inner),
          fmt::format("{} in NCHW{}c", conv.name, block)};
}

KernelCase make_case(const Conv& conv, Form form, int64_t block) {
  const ConvText text = text_of(conv, form, block);
  const int64_t pad = (conv.taps - 1) / 2, out_size = (conv.size + 2 * pad - conv.taps) / conv.stride + 1;
  const int64_t depth = conv.in_channels / conv.groups;
  KernelCase result{.name = text.name};
  result.program = fmt::format(
      "#[version = \"0.0.5\"]\n"
      "def @main(%x: Tensor[{0}, float32], %w: Tensor[{1}, float32]) {{\n"
      "  nn.conv2d(%x, %w, strides=[{2}, {2}], padding=[{3}, {3}, {3}, {3}], groups={4}, channels={5},\n"
      "            kernel_size=[{6}, {6}]{7})\n"
      "}}\n",
      text.data, text.kernel, conv.stride, pad, conv.groups, conv.out_channels, conv.taps, text.layouts);
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

std::vector<KernelCase> kernel_cases(int64_t block) {
  std::vector<KernelCase> cases;
  for (const Conv& conv : kConvs) {
    cases.push_back(make_case(conv, Form::plain, 1));
    if (block > 1) cases.push_back(make_case(conv, conv.in_channels % block == 0 ? Form::blocked : Form::packs, block));
  }
  for (const Dense& dense : kDenses) cases.push_back(make_case(dense));
  return cases;
}

}  // namespace headrace::bench
