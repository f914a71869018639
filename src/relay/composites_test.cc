// Composite functions, as calls and by their names.
#include "relay/composites.h"

#include <gtest/gtest.h>

#include "relay/function_attrs.h"

namespace headrace::relay {
namespace {

Function function_with(const DictAttrs& attrs) {
  const Var x = make_var("x", {});
  return make_function({x}, x, {}, {}, attrs);
}

TEST(Composites, AreLiteralsWithTheAttribute) {
  const Function named = function_with({{kComposite, Value(std::string("a.pair"))}});
  const Function plain = function_with({}), odd = function_with({{kComposite, Value(int64_t{1})}});
  const auto called = [](const Expr& callee) {
    const Expr call = make_call(callee, {make_var("y", {})});
    return called_composite(*call.as<CallNode>());
  };
  EXPECT_EQ(called(named), named.get());
  EXPECT_EQ(called(odd), odd.get());
  EXPECT_EQ(called(plain), nullptr);
  EXPECT_EQ(called(make_global_var("a.pair")), nullptr);
  EXPECT_EQ(composite_name(*named), "a.pair");
  EXPECT_EQ(composite_name(*plain), "");
  EXPECT_EQ(composite_name(*odd), "");
}

}  // namespace
}  // namespace headrace::relay
