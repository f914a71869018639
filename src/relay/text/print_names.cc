#include "relay/text/print_names.h"

#include <algorithm>

namespace headrace::relay {

bool reads_as_number(std::string_view text) {
  constexpr std::string_view kSuffixes[] = {"", "f", "f16", "f32", "f64", "bf16"};
  const std::string_view word = text.substr(0, text.find('.'));
  return (word.starts_with("nan") || word.starts_with("inf")) &&
         std::find(std::begin(kSuffixes), std::end(kSuffixes), word.substr(3)) != std::end(kSuffixes);
}

std::string_view current_op_name(std::string_view op) {
  // nn.conv2d takes packed layouts itself.
  if (op == "nn.contrib_conv2d_NCHWc" || op == "nn.contrib_depthwise_conv2d_NCHWc") return "nn.conv2d";
  if (op == "annotation.subgraph_begin" || op == "annotation.subgraph_start") return "annotation.compiler_begin";
  if (op == "annotation.subgraph_end") return "annotation.compiler_end";
  constexpr std::string_view kPrefix = "dyn.";
  constexpr std::string_view kAliases[] = {"broadcast_to",  "expand_dims",     "full",    "image.resize2d", "nn.pad",
                                           "nn.upsampling", "nn.upsampling3d", "one_hot", "ones",           "reshape",
                                           "squeeze",       "strided_slice",   "tile",    "topk",           "zeros"};
  if (!op.starts_with(kPrefix)) return op;
  const std::string_view plain = op.substr(kPrefix.size());
  return std::find(std::begin(kAliases), std::end(kAliases), plain) == std::end(kAliases) ? op : plain;
}

bool can_name_op(std::string_view text) {
  return is_identifier(text, true) && !is_reserved_word(text) && text != "import" && !reads_as_number(text) &&
         current_op_name(text) == text;
}

}  // namespace headrace::relay
