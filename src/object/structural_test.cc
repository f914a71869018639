// Tests structural equality and hash together: equal values have equal hashes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kit/options.h"
#include "object/shape_tuple.h"
#include "object/string.h"
#include "object/structural_equal.h"
#include "object/tests/test_nodes.h"

namespace headrace::testing {
namespace {

constexpr StructuralOptions kMapped{.map_free_vars = true};

bool same(const Value& a, const Value& b, StructuralOptions options = {}) {
  const bool equal = structural_equal(a, b, options);
  EXPECT_EQ(equal, structural_equal(b, a, options)) << "not symmetric";
  EXPECT_EQ(equal, !first_mismatch(a, b, options).has_value());
  if (equal) {
    EXPECT_EQ(structural_hash(a, options), structural_hash(b, options));
  }
  return equal;
}
// Different and, these being no accidents, of different hash.
bool apart(const Value& a, const Value& b, StructuralOptions options = {}) {
  return !same(a, b, options) && structural_hash(a, options) != structural_hash(b, options);
}

TEST(StructuralValue, NumbersAndStrings) {
  EXPECT_TRUE(same(Value(), Value()));
  EXPECT_TRUE(same(3, int64_t{3}));
  EXPECT_TRUE(apart(3, 4));
  EXPECT_TRUE(apart(1, true));
  EXPECT_TRUE(apart(1, 1.0));
  EXPECT_TRUE(apart(0, Value()));
  EXPECT_TRUE(same("abc", std::string("abc")));
  EXPECT_TRUE(apart("abc", "abd"));
  EXPECT_TRUE(apart("abc", Bytes{"abc"}));
  EXPECT_TRUE(same(Bytes{"abc"}, Bytes{"abc"}));
  EXPECT_TRUE(same(Shape{1, 2}, Shape{1, 2}));
  EXPECT_TRUE(apart(Shape{1, 2}, Shape{1, 2, 1}));
  EXPECT_TRUE(apart(Shape{}, Value()));
}

TEST(StructuralValue, FloatsByTheirBits) {
  const double nan = std::nan("1"), other_nan = -std::nan("2");
  EXPECT_TRUE(same(nan, nan));
  EXPECT_TRUE(same(nan, other_nan));
  EXPECT_TRUE(apart(0.0, -0.0));
  EXPECT_TRUE(same(0.1, 0.1));
  EXPECT_TRUE(apart(std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()));
}

TEST(StructuralValue, ArraysAndMaps) {
  EXPECT_TRUE(same(Array<int64_t>{1, 2}, Array<int64_t>{1, 2}));
  EXPECT_TRUE(apart(Array<int64_t>{1, 2}, Array<int64_t>{2, 1}));
  EXPECT_TRUE(apart(Array<int64_t>{1, 2}, Array<int64_t>{1, 2, 3}));
  EXPECT_TRUE(
      apart(Array<Value>{Value(Array<int64_t>{1}), Value(2)}, Array<Value>{Value(1), Value(Array<int64_t>{2})}));
  EXPECT_TRUE(same(Array<int64_t>(), Array<int64_t>()));
  EXPECT_TRUE(apart(Array<int64_t>(), Value()));
  using M = Map<std::string, int64_t>;
  EXPECT_TRUE(same(M{{"a", 1}, {"b", 2}}, M{{"b", 2}, {"a", 1}}));
  EXPECT_TRUE(apart(M{{"a", 1}, {"b", 2}}, M{{"b", 1}, {"a", 2}}));
  EXPECT_TRUE(apart(M{{"a", 1}}, M{{"a", 1}, {"b", 2}}));
  EXPECT_TRUE(apart(M(), Array<int64_t>()));
  using K = Map<Value, Value>;
  EXPECT_TRUE(same(K{{1, "x"}, {"1", "y"}, {Shape{2}, "z"}}, K{{Shape{2}, "z"}, {"1", "y"}, {1, "x"}}));
}

TEST(StructuralNode, TreesIgnoreSharing) {
  const Expr one = make_int(1);
  EXPECT_TRUE(same(make_tuple({one, one}), make_tuple({make_int(1), make_int(1)})));
  EXPECT_TRUE(apart(make_tuple({one, one}), make_tuple({one, make_int(2)})));
  EXPECT_TRUE(apart(make_tuple({one}), make_type({one})));
}

TEST(StructuralNode, SharingOfDagNodesCorresponds) {
  const auto shared = make_call("f", {});
  const Expr twice = make_tuple({shared, shared}), apart_calls = make_tuple({make_call("f", {}), make_call("f", {})});
  EXPECT_FALSE(same(twice, apart_calls));
  EXPECT_TRUE(same(apart_calls, make_tuple({make_call("f", {}), make_call("f", {})})));
  const auto other = make_call("f", {});
  EXPECT_TRUE(same(twice, make_tuple({other, other})));
  // Two graphs of the same nodes differ if the nodes are shared differently.
  const auto a = make_call("f", {}), b = make_call("f", {});
  EXPECT_FALSE(same(make_tuple({a, b, a}), make_tuple({a, b, b})));
}

TEST(StructuralNode, UniqueAndConstant) {
  const auto op = make_object<OpNode>();
  EXPECT_TRUE(same(op, op));
  EXPECT_TRUE(same(make_tuple({op}), make_tuple({op})));
  EXPECT_FALSE(same(make_object<OpNode>(), make_object<OpNode>()));
  EXPECT_TRUE(same(make_constant(2.5), make_constant(2.5)));
  EXPECT_TRUE(apart(make_constant(2.5), make_constant(3.5)));
}

TEST(StructuralNode, IgnoredFieldsDoNotCount) {
  auto a = make_call("f", {}), b = make_call("f", {});
  b->note = "from line 7";
  EXPECT_TRUE(same(a, b));
}

TEST(StructuralBinder, LetBindsByPlace) {
  const Var x = make_var("x"), y = make_var("y");
  EXPECT_TRUE(same(make_let(x, make_int(1), make_call("f", {x})), make_let(y, make_int(1), make_call("f", {y}))));
  EXPECT_FALSE(same(make_let(x, make_int(1), make_call("f", {x})), make_let(y, make_int(1), make_call("f", {x}))));
  // A let binds its variable in the marked field only: in the value the variable is free.
  EXPECT_FALSE(same(make_let(x, x, x), make_let(y, y, y)));
}

TEST(StructuralBinder, ParametersKeepTheirOrder) {
  const Var x = make_var("x"), y = make_var("y"), p = make_var("p"), q = make_var("q");
  EXPECT_TRUE(same(make_function({x, y}, make_call("f", {x, y})), make_function({p, q}, make_call("f", {p, q}))));
  EXPECT_TRUE(apart(make_function({x, y}, make_call("f", {x, y})), make_function({p, q}, make_call("f", {q, p}))));
  EXPECT_FALSE(same(make_function({x, x}, x), make_function({p, q}, p)));
}

TEST(StructuralBinder, ParametersBindTheSymbolsOfTheirTypes) {
  const Expr n = make_symbol("n"), m = make_symbol("m");
  const auto square = [](const Expr& a, const Expr& b) {
    const Var x = make_var("x", make_type({a, b}));
    return make_function({x}, make_call("f", {x, a}));
  };
  EXPECT_TRUE(same(square(n, n), square(m, m)));
  EXPECT_FALSE(same(square(n, n), square(n, m)));
  EXPECT_TRUE(same(square(n, m), square(m, n)));
  // A let variable does not bind the symbols of its type.
  const Var x = make_var("x", make_type({n})), y = make_var("y", make_type({m}));
  EXPECT_FALSE(same(make_let(x, make_int(1), x), make_let(y, make_int(1), y)));
  EXPECT_TRUE(same(make_let(x, make_int(1), x), make_let(y, make_int(1), y), kMapped));
}

TEST(StructuralBinder, FreeVariables) {
  const Var x = make_var("x"), y = make_var("y"), z = make_var("z");
  EXPECT_TRUE(same(make_call("f", {x}), make_call("f", {x})));
  EXPECT_FALSE(same(make_call("f", {x}), make_call("f", {y})));
  EXPECT_TRUE(same(make_call("f", {x}), make_call("f", {y}), kMapped));
  EXPECT_TRUE(same(make_call("f", {x, x, y}), make_call("f", {y, y, z}), kMapped));
  EXPECT_TRUE(apart(make_call("f", {x, y}), make_call("f", {y, y}), kMapped)) << "one to one";
  EXPECT_TRUE(apart(make_call("f", {x, x}), make_call("f", {x, y}), kMapped)) << "one to one";
  const Var typed = make_var("t", make_type({make_int(3)}));
  EXPECT_TRUE(apart(make_call("f", {x}), make_call("f", {typed}), kMapped)) << "their types differ";
}

TEST(StructuralBinder, NodesAsKeysOfAMap) {
  const Var x = make_var("x"), y = make_var("y"), p = make_var("p"), q = make_var("q");
  using M = Map<Var, int64_t>;
  EXPECT_TRUE(same(M{{x, 1}, {y, 2}}, M{{y, 2}, {x, 1}}));
  EXPECT_FALSE(same(M{{x, 1}, {y, 2}}, M{{x, 1}, {p, 2}}));
  EXPECT_TRUE(same(M{{x, 1}, {y, 2}}, M{{p, 1}, {q, 2}}, kMapped));
  // Keys of content find each other in any order.
  using T = Map<Expr, int64_t>;
  EXPECT_TRUE(same(T{{make_int(1), 1}, {make_int(2), 2}}, T{{make_int(2), 2}, {make_int(1), 1}}));
  EXPECT_FALSE(same(T{{make_int(1), 1}, {make_int(2), 2}}, T{{make_int(2), 1}, {make_int(1), 2}}));
  EXPECT_TRUE(same(T{{make_int(1), 1}, {make_int(1), 2}}, T{{make_int(1), 1}, {make_int(1), 2}}));
}

TEST(StructuralMismatch, PathAndBothValues) {
  const auto left = make_function({}, make_call("f", {make_int(1), make_call("g", {make_int(2)}, {{"axis", 1}})}));
  const auto right = make_function({}, make_call("f", {make_int(1), make_call("g", {make_int(2)}, {{"axis", 2}})}));
  const auto mismatch = first_mismatch(left, right);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_EQ(mismatch->path, ".body.args[1].attrs[\"axis\"]");
  EXPECT_EQ(mismatch->left, "1");
  EXPECT_EQ(mismatch->right, "2");
  EXPECT_EQ(first_mismatch(1, 2)->path, "");
  const auto missing = first_mismatch(make_call("f", {}, {{"axis", 1}}), make_call("f", {}));
  EXPECT_EQ(missing->path, ".attrs[\"axis\"]");
  EXPECT_EQ(missing->right, "(missing)");
  EXPECT_EQ(first_mismatch(make_call("f", {}), make_call("f", {}, {{"axis", 1}}))->left, "(missing)");
  EXPECT_EQ(first_mismatch(make_call("f", {make_int(1)}), make_call("f", {}))->path, ".args");
}

TEST(StructuralMismatch, AssertSaysWhere) {
  assert_structural_equal(make_int(1), make_int(1));
  try {
    assert_structural_equal(make_tuple({make_int(1)}), make_tuple({make_int(2)}));
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_NE(e.message().find(".items[0].value"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("left:  1"), std::string::npos) << e.message();
  }
}

TEST(StructuralDepth, ChainsOf100000Nodes) {
  const int length = kit::by_depth(50'000);
  const auto chain = [length](int64_t last) {
    Expr body = make_int(last);
    for (int i = 0; i < length; ++i) body = make_let(make_var("v"), make_int(i), body);
    for (int i = 0; i < length; ++i) body = make_call("f", {body});
    return body;
  };
  const Value a = chain(1), b = chain(1), c = chain(2);
  EXPECT_TRUE(structural_equal(a, b));
  EXPECT_FALSE(structural_equal(a, c));
  EXPECT_EQ(structural_hash(a), structural_hash(b));
}

TEST(StructuralDepth, SharedTreesAreNotUnfolded) {
  const auto doubled = [] {
    Expr tree = make_int(1);
    for (int i = 0; i < 200; ++i) tree = make_tuple({tree, tree});
    return tree;
  };
  EXPECT_TRUE(same(doubled(), doubled()));
}

// Random programs: a copy with all nodes rebuilt and the variables renamed is equal; with one edit it is not.
class Program {
 public:
  explicit Program(uint32_t seed) : random_(seed) {}

  Expr make() {
    std::vector<Var> params;
    const Expr n = make_symbol("n");
    for (int i = 0; i < 3; ++i) {
      params.push_back(make_var("p", make_type({n, make_int(pick(3))})));
      pool_.push_back(params.back());
    }
    std::vector<std::pair<Var, Expr>> lets;
    for (int i = 0; i < 12; ++i) step(lets);
    Expr body = make_tuple({pool_.back(), any()});
    for (; !lets.empty(); lets.pop_back()) body = make_let(lets.back().first, lets.back().second, body);
    return make_function(Array<Var>(params), body);
  }

 private:
  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }
  Expr any() { return pool_[static_cast<size_t>(pick(static_cast<int64_t>(pool_.size())))]; }
  void step(std::vector<std::pair<Var, Expr>>& lets) {
    switch (pick(4)) {
      case 0:
        pool_.push_back(make_tuple({any(), make_int(pick(4))}));
        break;
      case 1:
        pool_.push_back(make_constant(static_cast<double>(pick(4))));
        break;
      case 2: {
        const Var var = make_var("v");
        lets.emplace_back(var, any());
        pool_.push_back(var);
        break;
      }
      default:
        pool_.push_back(make_call("op" + std::to_string(pick(3)), {any(), any()}, {{"b", pick(3)}, {"a", any()}}));
    }
  }
  std::mt19937 random_;
  std::vector<Expr> pool_;
};

// Rebuilds a graph: variables and dag nodes once each, trees at every place anew. Leaf number `edit` is changed.
class Rebuild {
 public:
  explicit Rebuild(int edit) : edit_(edit) {}
  int leaves() const { return seen_; }

  Value operator()(const Value& value) {
    if (const auto* array = value.as_node<ArrayObj>()) {
      auto copy = make_object<ArrayObj>();
      for (const Value& item : array->items) copy->items.push_back((*this)(item));
      return copy;
    }
    if (const auto* map = value.as_node<MapObj>()) {
      // Values in the order of insertion, stored in the opposite one.
      std::vector<std::pair<Value, Value>> items;
      for (const auto& [key, item] : map->items) items.emplace_back(key, (*this)(item));
      auto copy = make_object<MapObj>();
      for (; !items.empty(); items.pop_back()) copy->set(items.back().first, items.back().second);
      return copy;
    }
    if (value.type_index() == type_index::kInt) return Value(value.as<int64_t>() + (seen_++ == edit_ ? 1 : 0));
    return value.is_object() && !value.is<std::string>() ? node(*value.object()) : value;
  }

 private:
  Value node(const Object& object) {
    const StructuralKind kind = object.type_info().structural_kind;
    const bool once = kind == StructuralKind::var || kind == StructuralKind::dag;
    if (auto it = done_.find(&object); once && it != done_.end()) return it->second;
    std::vector<std::pair<std::string, Value>> fields;
    for (const FieldInfo& field : object.type_info().fields)
      fields.emplace_back(field.name, (*this)(field.get(&object)));
    Value copy = make_node(object.key(), fields);
    if (once) done_.emplace(&object, copy);
    return copy;
  }
  int edit_;
  int seen_ = 0;
  std::unordered_map<const Object*, Value> done_;
};

TEST(StructuralProperty, RebuiltProgramsAreEqualAndEditedOnesAreNot) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    const Value program = Program(seed).make();
    Rebuild rebuild(-1);
    const Value copy = rebuild(program);
    ASSERT_TRUE(same(program, copy)) << first_mismatch(program, copy)->path;
    ASSERT_TRUE(same(program, copy, kMapped));
    ASSERT_GT(rebuild.leaves(), 0);
    const int edit = static_cast<int>(seed * 7919) % rebuild.leaves();
    ASSERT_TRUE(apart(program, Rebuild(edit)(program))) << "edit " << edit;
  }
}

}  // namespace
}  // namespace headrace::testing
