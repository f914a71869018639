// Attributes of convolutions and pools as tests list them: those that are not at their defaults.
#pragma once

#include "ops/nn/conv.h"
#include "ops/nn/pool.h"

namespace headrace::lower {

struct ConvChoice {
  Shape strides = {}, output_padding = {}, padding = {}, dilation = {};  // empty: the default
  int64_t groups = 1;
  std::string data_layout = {}, kernel_layout = {}, out_layout = {};  // empty: the default
  std::optional<DataType> out_dtype = {};

  template <typename A>
    requires std::derived_from<A, ops::ConvAttrs>
  operator A() const {
    A attrs;
    if (!strides.empty()) attrs.strides = strides;
    if (!output_padding.empty()) attrs.output_padding = output_padding;
    if (!padding.empty()) attrs.padding = padding;
    if (!dilation.empty()) attrs.dilation = dilation;
    attrs.groups = groups;
    if (!data_layout.empty()) attrs.data_layout = data_layout;
    if (!kernel_layout.empty()) attrs.kernel_layout = kernel_layout;
    attrs.out_layout = out_layout;
    attrs.out_dtype = out_dtype;
    return attrs;
  }
};

struct PoolChoice {
  Shape pool_size, strides = {}, dilation = {}, padding = {};  // empty: the default
  std::string layout = {};                                     // empty: the default
  bool ceil_mode = false, count_include_pad = false;

  ops::PoolAttrs over(size_t spatial) const {
    ops::PoolAttrs attrs(spatial);
    attrs.pool_size = pool_size;
    if (!strides.empty()) attrs.strides = strides;
    if (!dilation.empty()) attrs.dilation = dilation;
    if (!padding.empty()) attrs.padding = padding;
    if (!layout.empty()) attrs.layout = layout;
    attrs.ceil_mode = ceil_mode;
    attrs.count_include_pad = count_include_pad;
    return attrs;
  }
};

}  // namespace headrace::lower
