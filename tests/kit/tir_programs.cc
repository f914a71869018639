#include "kit/tir_programs.h"

namespace headrace::kit {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

constexpr DataType kReal = DataType::float_(32), kInteger = DataType::int_(32);
constexpr int64_t kLength = 64;  // length of every parameter

class TirGenerator {
 public:
  explicit TirGenerator(Random& random) : random_(random) {}

  PrimFunc function() {
    std::vector<Stmt> items;
    const int64_t count = random_.integer(1, 3);
    for (int64_t i = 0; i < count; ++i) items.push_back(chance(1, 3) ? sums() : fill(chance(1, 2) ? y_ : z_));
    return make_prim_func("random", {x_, k_, h_, y_, z_}, 2, make_seq(items));
  }

 private:
  bool chance(int64_t wins, int64_t of) { return random_.integer(1, of) <= wins; }
  int64_t pick(std::initializer_list<int64_t> of) {
    return of.begin()[static_cast<size_t>(random_.integer(0, static_cast<int64_t>(of.size()) - 1))];
  }

  // for a: for b: buffer[a * extent of b + b] = value
  Stmt fill(const Buffer& buffer) {
    const int64_t inner = pick({1, 3, 4, 8, 16}), outer = kLength / inner;
    const PrimVar a = make_prim_var("i"), b = make_prim_var("lane");
    vars_ = {{a, outer}, {b, inner}};
    const PrimExpr at = a * inner + b, value = buffer->dtype.is_float() ? real(3) : integer(3);
    Stmt body = make_store(buffer, value, {at});
    if (chance(1, 4)) body = make_if(condition(1), body, chance(1, 2) ? make_store(buffer, value, {at}) : Stmt());
    if (chance(1, 5)) body = make_let(make_prim_var("v"), at, body);
    const ForKind inner_kind = static_cast<ForKind>(pick({0, 2, 2, 2, 3}));
    body = make_for(b, make_int(0), make_int(inner), inner_kind, body);
    return make_for(a, make_int(0), make_int(outer), static_cast<ForKind>(pick({0, 0, 1, 3})), body);
  }

  // Sums of a few terms in a buffer of vectors.
  Stmt sums() {
    const int64_t width = pick({4, 8, 16});
    const Buffer acc = make_buffer("acc", kReal, to_dims({width}));
    const PrimVar lane = make_prim_var("lane"), r = make_prim_var("r");
    vars_ = {{r, 3}, {lane, width}};
    const auto lanes = [&](const Stmt& body) {
      return make_for(lane, make_int(0), make_int(width), ForKind::vectorized, body);
    };
    const PrimExpr old = make_load(acc, {lane}), term = real(2);
    const PrimExpr next = chance(1, 2) ? old + term : make_intrinsic(Intrinsic::fma, kReal, {term, term, old});
    const Stmt step = make_for(r, make_int(0), make_int(3), chance(1, 2) ? ForKind::serial : ForKind::unrolled,
                               lanes(make_store(acc, next, {lane})));
    const Stmt all =
        make_seq({lanes(make_store(acc, make_float(0.5), {lane})), step, lanes(make_store(y_, old, {lane}))});
    return make_allocate(acc, chance(1, 2) ? Scope::registers : Scope::workspace, all);
  }

  // Below kLength.
  PrimExpr index() {
    const auto& [var, extent] = vars_[random_.index(vars_.size())];
    if (chance(1, 4)) return floor_mod(make_cast(kIndexType, integer(1)), make_int(kLength));
    if (extent * 2 <= kLength && chance(1, 4)) return var * 2;
    return extent < kLength && chance(1, 2) ? var + 1 : PrimExpr(var);
  }

  PrimExpr real(int depth) {
    if (depth == 0 || chance(1, 6)) {
      const PrimExpr leaves[] = {make_load(x_, {index()}), make_float(random_.chance(0.5F) ? 0.3 : -2.0),
                                 make_cast(kReal, make_load(h_, {index()}))};
      return leaves[random_.index(3)];
    }
    const PrimExpr a = real(depth - 1);
    switch (random_.integer(0, 6)) {
      case 0:
        return make_select(condition(depth - 1), a, real(depth - 1));
      case 1:
        return make_intrinsic(Intrinsic::if_then_else, kReal, {condition(depth - 1), a, real(depth - 1)});
      case 2:
        return make_cast(kReal, integer(depth - 1));
      case 3: {
        const Intrinsic kOne[] = {Intrinsic::exp,   Intrinsic::tanh,     Intrinsic::abs, Intrinsic::floor,
                                  Intrinsic::round, Intrinsic::log,      Intrinsic::erf, Intrinsic::rsqrt,
                                  Intrinsic::trunc, Intrinsic::nearbyint};
        return make_intrinsic(kOne[random_.index(std::size(kOne))], kReal, {a});
      }
      case 4:
        // Makes an expression with a shared part.
        return a * a + make_cast(kReal, make_cast(DataType::float_(16), a));
      default: {
        const BinaryOp kOps[] = {BinaryOp::add, BinaryOp::sub, BinaryOp::mul,
                                 BinaryOp::div, BinaryOp::min, BinaryOp::max};
        return make_binary(kOps[random_.index(std::size(kOps))], a, real(depth - 1));
      }
    }
  }

  PrimExpr integer(int depth) {
    if (depth == 0 || chance(1, 6)) {
      const PrimExpr leaves[] = {make_load(k_, {vars_[0].first}), make_int(random_.integer(-9, 9), kInteger),
                                 make_cast(kInteger, vars_[random_.index(vars_.size())].first)};
      return leaves[random_.index(3)];
    }
    const PrimExpr a = integer(depth - 1);
    switch (random_.integer(0, 4)) {
      case 0:
        return make_cast(kInteger, real(depth - 1));
      case 1: {
        const Intrinsic kTwo[] = {Intrinsic::bitwise_and, Intrinsic::bitwise_or, Intrinsic::bitwise_xor,
                                  Intrinsic::shift_left, Intrinsic::shift_right};
        return make_intrinsic(kTwo[random_.index(std::size(kTwo))], kInteger, {a, integer(depth - 1)});
      }
      case 2:
        // Never a NaN, whose bits differ from machine to machine.
        return make_intrinsic(Intrinsic::reinterpret, kInteger, {make_load(x_, {index()})});
      default: {
        const BinaryOp kOps[] = {BinaryOp::add,       BinaryOp::sub,       BinaryOp::mul, BinaryOp::div, BinaryOp::mod,
                                 BinaryOp::floor_div, BinaryOp::floor_mod, BinaryOp::min, BinaryOp::max};
        return make_binary(kOps[random_.index(std::size(kOps))], a, integer(depth - 1));
      }
    }
  }

  PrimExpr condition(int depth) {
    const BinaryOp kOps[] = {BinaryOp::lt, BinaryOp::le, BinaryOp::gt, BinaryOp::ge, BinaryOp::eq, BinaryOp::ne};
    const BinaryOp op = kOps[random_.index(std::size(kOps))];
    const PrimExpr compared = chance(1, 2) ? make_binary(op, real(std::max(0, depth - 1)), real(0))
                                           : make_binary(op, integer(std::max(0, depth - 1)), integer(0));
    if (chance(1, 4)) return make_not(compared);
    if (chance(1, 4)) return make_intrinsic(Intrinsic::isnan, DataType::bool_(), {real(0)});
    return chance(1, 4) && depth > 0 ? make_binary(BinaryOp::logical_or, compared, condition(depth - 1)) : compared;
  }

  Random& random_;
  Buffer x_ = make_buffer("x", kReal, to_dims({kLength})), k_ = make_buffer("k", kInteger, to_dims({kLength}));
  Buffer h_ = make_buffer("h", DataType::float_(16), to_dims({kLength}));
  Buffer y_ = make_buffer("y", kReal, to_dims({kLength})), z_ = make_buffer("z", kInteger, to_dims({kLength}));
  std::vector<std::pair<PrimVar, int64_t>> vars_;  // variables of the loops around, with their extents
};

}  // namespace

PrimFunc random_function(Random& random) { return TirGenerator(random).function(); }

}  // namespace headrace::kit
