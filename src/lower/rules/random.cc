// Rules of random ops, which run the Threefry cipher block by block.
#include "ops/algorithm/random.h"

#include <limits>
#include <numbers>

#include "lower/rules/rule.h"

namespace headrace::lower {

namespace {

using tir::make_seq;
using tir::Stmt;

constexpr DataType kWord = DataType::uint(64);

PrimExpr word(uint64_t value) { return make_int(static_cast<int64_t>(value), kWord); }
PrimExpr bits(Intrinsic op, const PrimExpr& a, const PrimExpr& b) { return make_intrinsic(op, kWord, {a, b}); }
PrimExpr exclusive_or(const PrimExpr& a, const PrimExpr& b) { return bits(Intrinsic::bitwise_xor, a, b); }
PrimExpr rotated(const PrimExpr& x, int by) {
  return bits(Intrinsic::bitwise_or, bits(Intrinsic::shift_left, x, word(static_cast<uint64_t>(by))),
              bits(Intrinsic::shift_right, x, word(static_cast<uint64_t>(64 - by))));
}

// Returns word i of the cipher's key. The fifth word is the parity of the others.
PrimExpr schedule(const Line& key, size_t i) {
  if (i < 4) return key.item(make_int(static_cast<int64_t>(i)));
  PrimExpr parity = word(ops::kThreefryParity);
  for (int64_t k = 0; k < 4; ++k) parity = exclusive_or(parity, key.item(make_int(k)));
  return parity;
}

// Returns word i of the counter of the block that is `block` blocks after the current one.
PrimExpr number(const Line& key, const PrimExpr& block, int64_t i) {
  const PrimExpr first = key.item(make_int(4)) + make_cast(kWord, block);
  if (i == 0) return first;
  const PrimExpr own = key.item(make_int(4 + i));
  if (i != 1) return own;
  return own + make_cast(kWord, make_binary(BinaryOp::lt, first, make_cast(kWord, block)));
}

// Encrypts the block's counter in x[0 .. 3] to its random words.
Stmt encrypt(const Line& key, const Line& x, const PrimExpr& block, bool splits) {
  const auto at = [](size_t i) { return make_int(static_cast<int64_t>(i)); };
  std::vector<Stmt> stmts;
  const auto set = [&](size_t i, const PrimExpr& value) { stmts.push_back(x.set_item(at(i), value)); };
  for (size_t i = 0; i < 4; ++i) {
    const PrimExpr own = number(key, block, static_cast<int64_t>(i));
    set(i, (i == 3 && splits ? exclusive_or(own, word(ops::kSplitBit)) : own) + schedule(key, i));
  }
  for (size_t round = 0; round < ops::kThreefryRounds; ++round) {
    const size_t first = round % 2 == 0 ? 1 : 3, second = 4 - first;
    for (const auto& [sum, other, k] : {std::tuple(size_t{0}, first, 0), std::tuple(size_t{2}, second, 1)}) {
      set(sum, x.item(at(sum)) + x.item(at(other)));
      set(other, exclusive_or(rotated(x.item(at(other)), ops::kThreefryRotations[round % 8][k]), x.item(at(sum))));
    }
    if (round % 4 != 3) continue;
    const size_t s = round / 4 + 1;
    for (size_t i = 0; i < 4; ++i)
      set(i, x.item(at(i)) + schedule(key, (s + i) % 5) + word(i == 3 ? static_cast<uint64_t>(s) : 0));
  }
  return make_seq(stmts);
}

// Writes the key that follows after `words` words were drawn.
Stmt write_next(const Line& key, const Line& out, int64_t words) {
  std::vector<Stmt> stmts;
  for (int64_t i = 0; i < ops::kKeyWords; ++i) {
    const PrimExpr value = i < 4   ? key.item(make_int(i))
                           : i < 8 ? number(key, make_int((words + 3) / 4), i - 4)
                                   : word(0);
    stmts.push_back(out.set_item(make_int(i), value));
  }
  return make_seq(stmts);
}

// Loops over the blocks and runs write(block, words of the block) for each.
Stmt each_block(const KernelInput& input, const Line& key, int64_t blocks,
                const std::function<Stmt(const PrimExpr&, const Line&)>& write) {
  return each_parallel(input, blocks, blocks * 64, [&](const PrimExpr& block) {
    return with_scratch("words", kWord, {4},
                        [&](const Line& x) { return make_seq({encrypt(key, x, block, false), write(block, x)}); });
  });
}

// Runs body(place, k) for each number k below `per` of a block whose element, block * per + k, exists in the result.
Stmt each_number(const PrimExpr& block, int64_t per, int64_t size,
                 const std::function<Stmt(const PrimExpr& place, int64_t k)>& body) {
  std::vector<Stmt> stmts;
  for (int64_t k = 0; k < per; ++k) {
    const PrimExpr place = block * per + k;
    stmts.push_back(tir::make_if(make_binary(BinaryOp::lt, place, make_int(size)), body(place, k)));
  }
  return make_seq(stmts);
}

Stmt generate_rule(const KernelInput& input) {
  const Line &key = input.inputs[0], &out = input.outputs[1];
  const Stmt blocks = each_block(input, key, (out.size() + 3) / 4, [&](const PrimExpr& block, const Line& x) {
    return each_number(block, 4, out.size(),
                       [&](const PrimExpr& place, int64_t k) { return out.set_item(place, x.item(make_int(k))); });
  });
  return make_seq({blocks, write_next(key, input.outputs[0], out.size())});
}

Stmt split_keys_rule(const KernelInput& input) {
  std::vector<Stmt> stmts;
  for (int64_t side = 0; side < 2; ++side) {
    const Line& out = input.outputs[static_cast<size_t>(side)];
    stmts.push_back(with_scratch("words", kWord, {4}, [&](const Line& x) {
      const Stmt write = each(ops::kKeyWords, [&](const PrimExpr& i) {
        return out.set_item(i, guarded(make_binary(BinaryOp::lt, i, make_int(4)), x.item(i), word(0)));
      });
      return make_seq({encrypt(input.inputs[0], x, make_int(side), true), write});
    }));
  }
  return make_seq(stmts);
}

// Returns a number in [0, 1) from the highest bits of the word, as many as the dtype has digits.
PrimExpr unit(const PrimExpr& x, DataType dtype) {
  const int digits = dtype.bits() == 32 ? std::numeric_limits<float>::digits : std::numeric_limits<double>::digits;
  const PrimExpr high = bits(Intrinsic::shift_right, x, word(static_cast<uint64_t>(64 - digits)));
  // The value is below 2^53, so that converting it as a signed number is exact.
  return divide(make_cast(dtype, make_cast(kIndexType, high)),
                make_float(static_cast<double>(uint64_t{1} << digits), dtype));
}

PrimExpr normal(const PrimExpr& first, const PrimExpr& second) {
  const DataType dtype = first->dtype;
  const auto call = [&](Intrinsic f, const PrimExpr& x) { return make_intrinsic(f, dtype, {x}); };
  const PrimExpr rest = make_float(1, dtype) - first;
  const PrimExpr radius = call(Intrinsic::sqrt, make_float(-2, dtype) * call(Intrinsic::log, rest));
  return radius * call(Intrinsic::cos, make_float(2 * std::numbers::pi, dtype) * second);
}

KernelRuleFn numbers_rule(bool is_normal) {
  return [is_normal](const KernelInput& input) {
    const Line &key = input.inputs[0], &out = input.outputs[1];
    const DataType dtype = out.buffer->dtype;
    const PrimExpr a = input.inputs[1].item(make_int(0)), b = input.inputs[2].item(make_int(0));
    const int64_t takes = is_normal ? 2 : 1, per = 4 / takes;
    const Stmt blocks = each_block(input, key, (out.size() + per - 1) / per, [&](const PrimExpr& block, const Line& x) {
      return each_number(block, per, out.size(), [&](const PrimExpr& place, int64_t k) {
        const auto uniform = [&](int64_t i) { return unit(x.item(make_int(i)), dtype); };
        if (!is_normal) return out.set_item(place, a + (b - a) * uniform(k));
        return out.set_item(place, a + b * normal(uniform(2 * k), uniform(2 * k + 1)));
      });
    });
    return make_seq({blocks, write_next(key, input.outputs[0], out.size() * takes)});
  };
}

// Returns the class whose part of [0, total) contains `number`: the first class at which the running sum exceeds it.
Stmt find_class(const Line& probs, const PrimExpr& first, int64_t classes, const PrimExpr& number, const Line& out,
                const PrimExpr& place) {
  const DataType dtype = probs.buffer->dtype;
  const PrimExpr zero = make_float(0, dtype);
  return with_cell(dtype, [&](const Cell& sum) {
    return with_cell(kIndexType, [&](const Cell& found) {
      const Stmt look = each(classes, [&](const PrimExpr& k) {
        return bind(probs.item(first + k), [&](const PrimExpr& own) {
          // Keeps `found` if an earlier running sum exceeded the number.
          const PrimExpr is_open = make_binary(BinaryOp::logical_and, make_binary(BinaryOp::gt, own, zero),
                                               make_binary(BinaryOp::le, sum.get(), number));
          return tir::make_if(is_open, make_seq({found.set(k), sum.set(sum.get() + own)}));
        });
      });
      return make_seq({sum.set(zero), found.set(make_int(0)), look, out.set_item(place, found.get())});
    });
  });
}

Stmt multinomial_rule(const KernelInput& input) {
  const Line &key = input.inputs[0], &probs = input.inputs[1], &out = input.outputs[1];
  const DataType dtype = probs.buffer->dtype;
  const PrimExpr zero = make_float(0, dtype);
  const int64_t classes = probs.shape.back(), samples = out.shape.back(), rows = probs.size() / classes;
  const auto sum_up = [&](const Line& totals, const PrimExpr& row) {
    const Stmt steps = each(classes, [&](const PrimExpr& k) {
      return bind(probs.item(row * classes + k), [&](const PrimExpr& own) {
        return totals.set_item(row, totals.item(row) + make_select(make_binary(BinaryOp::gt, own, zero), own, zero));
      });
    });
    const PrimExpr total = totals.item(row);
    const PrimExpr is_finite = make_binary(BinaryOp::logical_and, make_binary(BinaryOp::gt, total, zero),
                                           make_binary(BinaryOp::lt, total, tir::identity_of(Combiner::min, dtype)));
    return make_seq({totals.set_item(row, zero), steps,
                     tir::make_assert(is_finite,
                                      "random.multinomial: the probabilities of a row have no finite sum "
                                      "above 0")});
  };
  return with_scratch("totals", dtype, {rows}, [&](const Line& totals) {
    const Stmt blocks = each_block(input, key, (out.size() + 3) / 4, [&](const PrimExpr& block, const Line& x) {
      return each_number(block, 4, out.size(), [&](const PrimExpr& place, int64_t k) {
        return bind(floor_div(place, make_int(std::max<int64_t>(samples, 1))), [&](const PrimExpr& row) {
          return bind(unit(x.item(make_int(k)), dtype) * totals.item(row), [&](const PrimExpr& number) {
            return find_class(probs, row * classes, classes, number, out, place);
          });
        });
      });
    });
    return make_seq({each(rows, [&](const PrimExpr& row) { return sum_up(totals, row); }), blocks,
                     write_next(key, input.outputs[0], out.size())});
  });
}

}  // namespace

void register_random_rules() {
  set_kernel_rule("random.threefry_generate", generate_rule);
  set_kernel_rule("random.threefry_split", split_keys_rule);
  set_kernel_rule("random.uniform", numbers_rule(false));
  set_kernel_rule("random.normal", numbers_rule(true));
  set_kernel_rule("random.multinomial", multinomial_rule);
}

}  // namespace headrace::lower
