#include "arith/canonical_type.h"

#include <gtest/gtest.h>

#include "object/structural_equal.h"

namespace headrace::arith {
namespace {

Type tensor(std::vector<PrimExpr> dims) { return make_tensor_type(Array<PrimExpr>(std::move(dims))); }

TEST(CanonicalType, DimensionsOfOneValueAreOne) {
  const PrimVar t = make_prim_var("t"), n = make_prim_var("n");
  const Type sum = make_func_type({make_tuple_type({tensor({t + t, n})})}, tensor({n + t}));
  const Type product = make_func_type({make_tuple_type({tensor({t * 2, n})})}, tensor({t + n}));
  EXPECT_FALSE(structural_equal(Value(sum), Value(product)));
  EXPECT_TRUE(structural_equal(Value(canonical_type(sum)), Value(canonical_type(product))));
  EXPECT_FALSE(structural_equal(Value(canonical_type(tensor({t + t}))), Value(canonical_type(tensor({t * 3})))));
}

TEST(CanonicalType, TypesInCanonicalFormStay) {
  const PrimVar n = make_prim_var("n");
  for (const Type& type :
       {tensor({make_int(2), make_any(), n}), Type(make_tuple_type({})), make_ref_type(tensor({make_any() * 2}))})
    EXPECT_EQ(canonical_type(type), type) << to_string(type);
  EXPECT_EQ(canonical_type(Type()), Type());
}

TEST(CanonicalType, TypesMayNestDeep) {
  const PrimVar n = make_prim_var("n");
  Type type = tensor({n + n});
  for (int i = 0; i < 200'000; ++i) type = make_ref_type(type);
  EXPECT_NE(canonical_type(type), type);
}

}  // namespace
}  // namespace headrace::arith
