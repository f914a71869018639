// Discrete Fourier transforms: dft, stft.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct DFTAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DFTAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DFTAttrs>& f);
  bool inverse = false;
};

struct StftAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.StftAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<StftAttrs>& f);
  int64_t n_fft = 0;
  int64_t hop_length = 0;
  int64_t win_length = 0;
  bool normalized = false;
  bool onesided = true;
};

Expr dft(Expr re_data, Expr im_data, bool inverse = false, Span span = {});
Expr stft(Expr data, Expr window, StftAttrs attrs, Span span = {});

}  // namespace headrace::ops
