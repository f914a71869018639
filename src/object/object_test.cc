// Tests counts, weak references, type checks, and errors of values, constructors and functions on bad input.
#include <gtest/gtest.h>

#include "base/frames.h"
#include "kit/errors.h"
#include "object/foreign_error.h"
#include "object/function.h"
#include "object/reserved_global.h"
#include "object/structural_equal.h"
#include "object/tests/test_nodes.h"

namespace headrace::testing {
namespace {

TEST(Object, LayoutOfTheCAbi) {
  const Ref<StrObj> text = make_object<StrObj>("abc");
  const auto offset = [](const Object* object, const void* member) {
    return static_cast<const char*>(member) - reinterpret_cast<const char*>(object);
  };
  EXPECT_EQ(offset(text.object(), &text->bytes), 24);
  const auto function = make_object<FunctionObj>();
  EXPECT_EQ(offset(function.object(), &function->safe_call), 24);
  const auto shape = make_object<ShapeObj>(Shape{1});
  EXPECT_EQ(offset(shape.object(), &shape->data), 24);
  EXPECT_EQ(offset(shape.object(), &shape->size), 32);
}

TEST(Object, CountsCopiesAndWeakReferences) {
  Ref<CallNode> call = make_call("f", {});
  const Ref<CallNode> second = call;
  EXPECT_EQ(call->use_count(), 2u);
  const Ref<CallNode> copy = copy_with(*call, [](CallNode& c) { c.op = "g"; });
  EXPECT_EQ(copy->use_count(), 1u);
  EXPECT_EQ(call->op, "f");
  EXPECT_THROW(copy_with<ExprNode>(*call, [](ExprNode&) {}), InternalError);
  const WeakRef<CallNode> weak(copy);
  EXPECT_TRUE(weak.lock().defined());
  WeakRef<CallNode> gone;
  {
    const Ref<CallNode> short_lived = make_call("h", {});
    gone = WeakRef<CallNode>(short_lived);
  }
  EXPECT_FALSE(gone.lock().defined());
}

TEST(Object, AMillionNodesAreFreedInConstantStack) {
  Expr chain = make_int(0);
  const WeakRef<ExprNode> end(chain);
  for (int i = 0; i < 1000000; ++i) {
    auto tuple = make_object<TupleNode>();
    tuple->items = Array<Expr>{chain};
    chain = tuple;
  }
  chain = {};
  EXPECT_FALSE(end.lock().defined());
}

TEST(Object, TypesByRangeAndByParent) {
  const Expr one = make_int(1);
  EXPECT_TRUE(one.is<ExprNode>());
  EXPECT_FALSE(one.is<CallNode>());
  EXPECT_EQ(find_type("test.Int"), &type_of<IntNode>());
  EXPECT_EQ(find_type("test.Nothing"), nullptr);
}

TEST(Container, CopyOnWriteAndOrder) {
  Array<int64_t> a{1, 2}, b = a;
  b.push_back(3);
  EXPECT_EQ(a.size(), 2u);
  EXPECT_THROW(a.set(2, 0), UserError);
  Map<std::string, int64_t> m{{"z", 1}, {"a", 2}, {"k", 3}}, n = m;
  EXPECT_TRUE(n.erase("a"));
  EXPECT_FALSE(n.erase("a"));
  EXPECT_EQ(m.size(), 3u);
  EXPECT_EQ((*n.begin()).first, "z");
  EXPECT_EQ(n.at("k"), 3);
  EXPECT_EQ(kit::user_error_of([&] { n.at("q"); }), "the Map has no key \"q\"");
}

TEST(Value, ConversionsSayBothKinds) {
  EXPECT_EQ(Value(3).as<double>(), 3.0);
  EXPECT_EQ(kit::user_error_of([] { Value("a").as<int64_t>(); }), "expected int, got str");
  EXPECT_EQ(kit::user_error_of([] { Value(300).as<int8_t>(); }), "expected int of 8 bits, got int 300");
  EXPECT_FALSE((Value(Array<Value>{Value()}).is<Array<Expr>>())) << "an item is never null";
  EXPECT_TRUE((Value(Array<Value>{Value()}).is<Array<std::optional<int64_t>>>()));
}

TEST(MakeNode, EveryWrongFieldIsNamed) {
  using Fields = std::vector<std::pair<std::string, Value>>;
  const auto error = [](std::string_view key, const Fields& fields) {
    return kit::user_error_of([&] { make_node(key, fields); });
  };
  type_of<IntNode>(), type_of<LetNode>(), type_of<FunctionObj>();
  EXPECT_EQ(error("test.Nothing", {}), "there is no type 'test.Nothing'");
  EXPECT_EQ(error("test.Int", {}), "test.Int needs its field 'value': int");
  EXPECT_EQ(error("test.Int", {{"valu", 1}}), "test.Int has no field 'valu' to set; its fields: value");
  EXPECT_EQ(error("test.Int", {{"value", "x"}}), "field 'value' of test.Int: expected int, got str");
  EXPECT_EQ(error("test.Int", {{"value", 1}, {"value", 2}}), "field 'value' of test.Int is given 2 times");
  EXPECT_EQ(error("test.Let", {{"value", Value()}, {"var", make_var("x")}, {"body", make_int(1)}}),
            "test.Let needs its field 'value': test.Expr");
  EXPECT_EQ(error("object.Function", {}), "type object.Function cannot be made from its fields");
}

int failing(void*, const RawValue*, int32_t, RawValue*) {
  try {
    throw UserError("no such thing", {"nn.conv2d", "model.onnx"});
  } catch (...) {
    return store_current_exception();
  }
}

TEST(PackedFunc, ErrorsKeepTheirPlace) {
  auto object = make_object<FunctionObj>();
  object->safe_call = &failing;
  try {
    const PackedFunc function(object);
    function();
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(), "no such thing");
    EXPECT_EQ(e.where().op, "nn.conv2d");
    EXPECT_EQ(e.where().place, "model.onnx");
  }
}

// Raises an error with a payload, from which another language would make its own exception again.
int failing_elsewhere(void*, const RawValue*, int32_t, RawValue*) {
  try {
    throw ForeignError("KeyError", "no such key", make_object<StrObj>("the exception"));
  } catch (...) {
    return store_current_exception();
  }
}

TEST(PackedFunc, ErrorsOfOtherLanguagesKeepTheirPayload) {
  auto object = make_object<FunctionObj>();
  object->safe_call = &failing_elsewhere;
  try {
    const PackedFunc function(object);
    function();
    FAIL() << "no error";
  } catch (const ForeignError& e) {
    EXPECT_EQ(e.kind(), "KeyError");
    EXPECT_EQ(e.message(), "no such key");
    ASSERT_NE(e.payload().as<StrObj>(), nullptr);
    EXPECT_EQ(e.payload().as<StrObj>()->data, "the exception");
  }
}

TEST(PackedFunc, ArgumentsAreChecked) {
  const PackedFunc add = make_packed([](int64_t a, int64_t b) { return a + b; });
  EXPECT_EQ(add(1, 2).as<int64_t>(), 3);
  EXPECT_EQ(kit::user_error_of([&] { add(1); }), "expected 2 arguments, got 1");
  EXPECT_EQ(kit::user_error_of([&] { add(1, "b"); }), "argument 1: expected int, got str");
  const PackedFunc take = make_packed([](Expr e) { return e; });
  EXPECT_EQ(kit::user_error_of([&] { take(nullptr); }), "argument 0: expected test.Expr, got None");
}

// A file's names need not be UTF-8, and a message that quotes one crosses the border of a library as it is.
TEST(Function, MessagesKeepBytesThatAreNoText) {
  const PackedFunc fail([](Args) -> Value { throw_user_error("there is no '{}'", "caf\xe9"); });
  RawValue result;
  ASSERT_EQ(fail.object()->safe_call(static_cast<Object*>(fail.object().get()), nullptr, 0, &result), -1);
  EXPECT_EQ(kit::user_error_of([] { throw_stored_error(); }), "there is no 'caf\xe9'");
}

// Python and other languages store errors; a defect's frames are those it was thrown in.
TEST(Function, ADefectKeepsItsFramesAcrossTheConvention) {
  try {
    HEADRACE_CHECK(false, "seven is {}", 8);
  } catch (...) {
    store_current_exception();
  }
  const Ref<ErrorObj> error = take_stored_error();
  EXPECT_EQ(error->message.find("C++ frames"), std::string::npos) << error->message;
  EXPECT_NE(error->traceback.find("object_test+0x"), std::string::npos) << error->traceback;
  store_error(error);
  try {
    throw_stored_error();
    FAIL() << "no error";
  } catch (const InternalError& again) {
    EXPECT_EQ(frames_of(again), error->traceback);
  }
}

TEST(Registry, NamesAreTakenOnce) {
  register_global("test.one", make_packed([] { return int64_t{1}; }));
  EXPECT_EQ(get_global("test.one")().as<int64_t>(), 1);
  EXPECT_THROW(register_global("test.one", make_packed([] { return int64_t{2}; })), UserError);
  EXPECT_THROW(get_global("test.two"), UserError);
}

// A replaced function may look in the registry while it is destroyed, as finalizers of Python do.
TEST(Registry, ReplacedFunctionsGoAfterTheLock) {
  bool found = false;
  struct Finalizer {
    bool& found;
    ~Finalizer() { found = static_cast<bool>(find_global("test.registry.replaced")); }
  };
  auto held = std::make_shared<Finalizer>(found);
  register_global("test.registry.replaced", PackedFunc([held](Args) -> Value { return Value(); }));
  held.reset();
  register_global("test.registry.replaced", PackedFunc([](Args) -> Value { return Value(1); }), true);
  EXPECT_TRUE(found);
}

TEST(Registry, ReservedNamesStayAsTheyAre) {
  register_global("test.reserved", make_packed([] { return int64_t{1}; }));
  reserve_global("test.reserved", "it is mine");
  const auto other = make_packed([] { return int64_t{2}; });
  EXPECT_EQ(kit::user_error_of([&] { register_global("test.reserved", other, true); }),
            "global function 'test.reserved' is not for registering: it is mine");
  EXPECT_EQ(get_global("test.reserved")().as<int64_t>(), 1);
}

}  // namespace
}  // namespace headrace::testing
