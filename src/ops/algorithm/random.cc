#include "ops/algorithm/random.h"

#include <array>
#include <bit>
#include <cmath>
#include <numbers>

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "relay/expr.h"

namespace headrace::ops {

void ThreefryGenerateAttrs::fields(FieldList<ThreefryGenerateAttrs>& f) {
  f.field<&ThreefryGenerateAttrs::out_shape>("out_shape", {.doc = "the shape of the random words"});
}

void UniformAttrs::fields(FieldList<UniformAttrs>& f) {
  f.field<&UniformAttrs::out_shape>("out_shape", {.doc = "the result's shape"})
      .field<&UniformAttrs::out_dtype>("out_dtype",
                                       {.default_value = "float32", .has_default = true, .doc = "float32 or float64"});
}

void MultinomialAttrs::fields(FieldList<MultinomialAttrs>& f) {
  f.field<&MultinomialAttrs::num_samples>("num_samples",
                                          {.default_value = 1, .has_default = true, .doc = "indices a row"});
}

namespace {

constexpr DataType kWord = DataType::uint(64);

TensorType key_type() { return make_tensor_type(Shape{kKeyWords}, kWord); }

void check_key(const RelationInput& input) {
  const TensorType key = input.tensor(0);
  if (key && (key->dtype != kWord || as_shape(key->shape) != Shape{kKeyWords}))
    input.fail(fmt::format("key must be {}, got {}", show(key_type()), show(key)));
}

void check_shape(const RelationInput& input, const Shape& shape) {
  for (const int64_t dim : shape) {
    if (dim < 0) input.fail(fmt::format("out_shape has a negative size: ({})", fmt::join(shape, ", ")));
  }
}

Type relate_generate(const RelationInput& input) {
  check_key(input);
  const Shape& shape = input.call.attrs_as<ThreefryGenerateAttrs>().out_shape;
  check_shape(input, shape);
  return make_tuple_type({key_type(), make_tensor_type(shape, kWord)});
}

Type relate_split(const RelationInput& input) {
  check_key(input);
  return make_tuple_type({key_type(), key_type()});
}

Type relate_numbers(const RelationInput& input) {
  check_key(input);
  const auto& attrs = input.call.attrs_as<UniformAttrs>();
  check_shape(input, attrs.out_shape);
  if (attrs.out_dtype != DataType::float_(32) && attrs.out_dtype != DataType::float_(64))
    input.fail(fmt::format("out_dtype must be float32 or float64, got {}", attrs.out_dtype));
  for (const size_t i : {1u, 2u}) {
    const TensorType number = input.tensor(i);
    if (number && (!number->shape.empty() || number->dtype != attrs.out_dtype))
      input.fail(fmt::format("{} must be a scalar of {}, got {}", input.call.as_op()->arguments[i].name,
                             attrs.out_dtype, show(number)));
  }
  return make_tuple_type({key_type(), make_tensor_type(attrs.out_shape, attrs.out_dtype)});
}

Type relate_multinomial(const RelationInput& input) {
  check_key(input);
  const int64_t samples = input.call.attrs_as<MultinomialAttrs>().num_samples;
  if (samples < 0 || samples > INT32_MAX) input.fail(fmt::format("num_samples is {}", samples));
  const TensorType probs = input.tensor(1);
  if (!probs) return {};
  if (probs->shape.empty() || (probs->dtype != DataType::float_(32) && probs->dtype != DataType::float_(64)))
    input.fail(fmt::format("probs must be float32 or float64 [..., classes], got {}", show(probs)));
  if (is_int(probs->shape.back(), 0)) input.fail(fmt::format("probs {} has no classes", show(probs)));
  Array<PrimExpr> dims = probs->shape;
  dims.set(dims.size() - 1, make_int(samples));
  return make_tuple_type({key_type(), make_tensor_type(dims, DataType::int_(32))});
}

using Words = std::array<uint64_t, 4>;

Words threefry(const Words& key, Words x) {
  const uint64_t schedule[5] = {key[0], key[1], key[2], key[3], kThreefryParity ^ key[0] ^ key[1] ^ key[2] ^ key[3]};
  for (size_t i = 0; i < 4; ++i) x[i] += schedule[i];
  for (size_t round = 0; round < kThreefryRounds; ++round) {
    const size_t first = round % 2 == 0 ? 1 : 3, second = 4 - first;
    x[0] += x[first];
    x[first] = std::rotl(x[first], kThreefryRotations[round % 8][0]) ^ x[0];
    x[2] += x[second];
    x[second] = std::rotl(x[second], kThreefryRotations[round % 8][1]) ^ x[2];
    if (round % 4 != 3) continue;
    const size_t s = round / 4 + 1;
    for (size_t i = 0; i < 4; ++i) x[i] += schedule[(s + i) % 5];
    x[3] += s;
  }
  return x;
}

// The key's words, and its blocks by number.
struct Generator {
  Words key, counter;
  explicit Generator(const NDArray& array) {
    const Elements<uint64_t> words(array);
    for (size_t i = 0; i < 4; ++i) {
      key[i] = words[static_cast<int64_t>(i)];
      counter[i] = words[static_cast<int64_t>(i) + 4];
    }
  }
  Words number(uint64_t block) const {
    Words at = counter;
    at[0] += block;
    at[1] += at[0] < block ? 1 : 0;
    return at;
  }
  uint64_t word(int64_t i) const {
    return threefry(key, number(static_cast<uint64_t>(i / 4)))[static_cast<size_t>(i % 4)];
  }
  // The key after so many words.
  void write_next(const NDArray& out, int64_t words) const {
    const Words next = number(static_cast<uint64_t>((words + 3) / 4));
    const Elements<uint64_t> y(out);
    for (int64_t i = 0; i < kKeyWords; ++i)
      y.set(i, i < 4 ? key[static_cast<size_t>(i)] : i < 8 ? next[static_cast<size_t>(i - 4)] : 0);
  }
};

std::vector<NDArray> eval_generate(const EvalInput& input) {
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  const Generator generator(input.args[0]);
  const Elements<uint64_t> y(outs[1]);
  for (int64_t i = 0; i < outs[1].num_elements(); ++i) y.set(i, generator.word(i));
  generator.write_next(outs[0], outs[1].num_elements());
  return outs;
}

std::vector<NDArray> eval_split(const EvalInput& input) {
  std::vector<NDArray> outs;
  const Generator generator(input.args[0]);
  for (uint64_t k = 0; k < 2; ++k) {
    Words at = generator.number(k);
    at[3] ^= kSplitBit;
    const Words key = threefry(generator.key, at);
    outs.push_back(input.make_output(k));
    const Elements<uint64_t> y(outs.back());
    for (int64_t i = 0; i < kKeyWords; ++i) y.set(i, i < 4 ? key[static_cast<size_t>(i)] : 0);
  }
  return outs;
}

// Returns a number in [0, 1): the word's first bits, as many as C has digits.
template <typename C>
C unit(uint64_t word) {
  constexpr int kDigits = std::numeric_limits<C>::digits;
  return static_cast<C>(word >> (64 - kDigits)) / static_cast<C>(uint64_t{1} << kDigits);
}

template <bool is_normal>
std::vector<NDArray> eval_numbers(const EvalInput& input) {
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  const Generator generator(input.args[0]);
  const auto fill = [&]<typename C>() {
    const Elements<C> y(outs[1]), a(input.args[1]), b(input.args[2]);
    for (int64_t i = 0; i < outs[1].num_elements(); ++i) {
      if constexpr (is_normal) {
        const C radius = std::sqrt(C(-2) * std::log(C(1) - unit<C>(generator.word(2 * i))));
        const C angle = static_cast<C>(2 * std::numbers::pi) * unit<C>(generator.word(2 * i + 1));
        y.set(i, a[0] + b[0] * (radius * std::cos(angle)));
      } else {
        y.set(i, a[0] + (b[0] - a[0]) * unit<C>(generator.word(i)));
      }
    }
  };
  if (outs[1].dtype() == DataType::float_(32)) {
    fill.template operator()<float>();
  } else {
    fill.template operator()<double>();
  }
  generator.write_next(outs[0], outs[1].num_elements() * (is_normal ? 2 : 1));
  return outs;
}

// Returns the class whose part of [0, total) a number lies in; the last one with a part, where rounding leads past it.
template <typename C>
int64_t class_of(const Elements<C>& probs, int64_t first, int64_t classes, C number) {
  C sum = 0;
  int64_t last = 0;
  for (int64_t k = 0; k < classes; ++k) {
    if (!(probs[first + k] > 0)) continue;
    sum += probs[first + k];
    if (sum > number) return k;
    last = k;
  }
  return last;
}

std::vector<NDArray> eval_multinomial(const EvalInput& input) {
  const std::vector<NDArray> outs{input.make_output(0), input.make_output(1)};
  const Generator generator(input.args[0]);
  const NDArray& weights = input.args[1];
  const int64_t classes = weights.shape().back(), samples = input.attrs<MultinomialAttrs>().num_samples;
  const auto fill = [&]<typename C>() {
    const Elements<C> probs(weights);
    const Elements<int32_t> y(outs[1]);
    for (int64_t row = 0; row < weights.num_elements() / classes; ++row) {
      C total = 0;
      for (int64_t k = 0; k < classes; ++k) total += probs[row * classes + k] > 0 ? probs[row * classes + k] : C{0};
      if (!(total > 0 && total <= std::numeric_limits<C>::max()))
        throw_at(input.call.span, "random.multinomial",
                 fmt::format("the probabilities of row {} sum up to {}", row, total));
      for (int64_t i = row * samples; i < (row + 1) * samples; ++i)
        y.set(i, static_cast<int32_t>(class_of<C>(probs, row * classes, classes, unit<C>(generator.word(i)) * total)));
    }
  };
  if (weights.dtype() == DataType::float_(32)) {
    fill.template operator()<float>();
  } else {
    fill.template operator()<double>();
  }
  generator.write_next(outs[0], outs[1].num_elements());
  return outs;
}

}  // namespace

void register_random_ops() {
  OpBuilder("random.threefry_generate",
            "Random words and the key for those after them: key uint64[10] -> (uint64[10], uint64[out_shape]). "
            "Threefry-4x64-20 of the key's block numbers, four words a block.")
      .arg("key", "Tensor", "uint64[10]: the key, as relay.random.threefry_key makes it")
      .attrs<ThreefryGenerateAttrs>()
      .relation(relate_generate)
      .fusion(FusionKind::opaque)
      .eval(eval_generate);
  OpBuilder("random.threefry_split",
            "Two keys of independent words, in place of the one given: key uint64[10] -> (uint64[10], uint64[10]).")
      .arg("key", "Tensor", "uint64[10]: the key")
      .relation(relate_split)
      .fusion(FusionKind::opaque)
      .eval(eval_split);
  OpBuilder("random.uniform",
            "Numbers in [low, high): key uint64[10], low f[], high f[] -> (the next key, f[out_shape]). Rounding "
            "of low + (high - low) * u, u in [0, 1), may give high where few numbers lie between. One word each.")
      .arg("key", "Tensor", "uint64[10]: the key")
      .arg("low", "Tensor", "out_dtype[]: the least number")
      .arg("high", "Tensor",
           "out_dtype[]: the bound that the numbers stay below, except for rounding; high - low is finite")
      .attrs<UniformAttrs>()
      .relation(relate_numbers)
      .fusion(FusionKind::opaque)
      .eval(eval_numbers<false>);
  OpBuilder(
      "random.normal",
      "Normally distributed numbers: key uint64[10], mean f[], scale f[] -> (the next key, f[out_shape]). Box and "
      "Muller 1958, two words each.")
      .arg("key", "Tensor", "uint64[10]: the key")
      .arg("mean", "Tensor", "out_dtype[]: the mean")
      .arg("scale", "Tensor", "out_dtype[]: the standard deviation")
      .attrs<UniformAttrs>()
      .relation(relate_numbers)
      .fusion(FusionKind::opaque)
      .eval(eval_numbers<true>);
  OpBuilder(
      "random.multinomial",
      "Indices of classes, each as often as its part of a row's sum says: key uint64[10], probs f[..., K] -> (the "
      "next key, int32[..., num_samples]). What is not above 0 counts nothing. One word each.")
      .arg("key", "Tensor", "uint64[10]: the key")
      .arg("probs", "Tensor", "float32[..., K] or float64[..., K]: how often each class comes, up to a factor")
      .attrs<MultinomialAttrs>()
      .relation(relate_multinomial)
      .fusion(FusionKind::opaque)
      .eval(eval_multinomial);
}

}  // namespace headrace::ops
