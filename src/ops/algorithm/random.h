// Random numbers that depend on their key alone: random.threefry_generate, threefry_split, uniform, normal,
// multinomial.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct ThreefryGenerateAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ThreefryGenerateAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ThreefryGenerateAttrs>& f);
  Shape out_shape;
};

// Attributes of uniform and normal.
struct UniformAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.UniformAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<UniformAttrs>& f);
  Shape out_shape;
  DataType out_dtype = DataType::float_(32);
};

struct MultinomialAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.MultinomialAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<MultinomialAttrs>& f);
  int64_t num_samples = 1;
};

// The constants of Threefry-4x64 with 20 rounds (Salmon et al. 2011): the rotations of round r, and the parity word.
inline constexpr int kThreefryRounds = 20;
inline constexpr int kThreefryRotations[8][2] = {{14, 16}, {52, 57}, {23, 40}, {5, 37},
                                                 {25, 33}, {46, 12}, {58, 22}, {32, 32}};
inline constexpr uint64_t kThreefryParity = 0x1BD11BDAA9FC1A22;
// A key is 10 words: four of the cipher's key, four of the next block's number, the least first, and two of no meaning.
// Blocks whose number has this bit in its last word are for splitting.
inline constexpr int64_t kKeyWords = 10;
inline constexpr uint64_t kSplitBit = uint64_t{1} << 63;

}  // namespace headrace::ops
