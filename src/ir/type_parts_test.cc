#include "ir/type_parts.h"

#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace {
namespace {

const Type kOne = make_tensor_type(Shape{1}), kTwo = make_tensor_type(Shape{2}), kNew = make_tensor_type(Shape{9});

Type relation_of(Array<Type> args) {
  auto node = make_object<TypeRelationNode>();
  node->name = "add";
  node->num_inputs = static_cast<int64_t>(args.size()) - 1;
  node->args = std::move(args);
  return node;
}

TypeVar param() {
  static const TypeVar var = make_type_var("A");
  return var;
}

// A type of each kind that has parts, and its parts in order.
std::vector<std::pair<Type, std::vector<Type>>> types_with_parts() {
  const Type relation = relation_of({kOne, kTwo});
  const Type list = make_global_type_var("List");
  return {{make_tuple_type({kOne, kTwo}), {kOne, kTwo}},
          {make_func_type({kOne, kTwo}, param(), {param()}, {relation}), {kOne, kTwo, param(), relation}},
          {make_ref_type(kOne), {kOne}},
          {make_type_call(list, {kOne, kTwo}), {list, kOne, kTwo}},
          {relation, {kOne, kTwo}}};
}

TEST(TypeParts, EachKindHasItsParts) {
  for (const auto& [type, parts] : types_with_parts()) EXPECT_EQ(type_children(type).to_vector(), parts) << type->key();
  for (const Type& leaf : {kOne, make_prim_type(DataType::int_(32)), Type(param()), Type(make_global_type_var("L")),
                           make_incomplete_type(), Type(make_tuple_type({}))})
    EXPECT_TRUE(type_children(leaf).empty()) << leaf->key();
}

TEST(TypeParts, OtherPartsMakeAnotherType) {
  for (const auto& [type, parts] : types_with_parts()) {
    type->span = make_span("here", 1, 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      Array<Type> changed(parts);
      changed.set(i, kNew);
      const Type made = with_type_children(type, changed);
      EXPECT_NE(made, type);
      EXPECT_EQ(made->type_index(), type->type_index());
      EXPECT_EQ(made->span, type->span);
      EXPECT_EQ(type_children(made).to_vector(), changed.to_vector()) << type->key() << " part " << i;
    }
    EXPECT_EQ(with_type_children(type, Array<Type>(parts)), type);
    EXPECT_EQ(type_children(type).to_vector(), parts);
  }
  EXPECT_THROW(with_type_children(kOne, {kTwo}), InternalError);
}

TEST(TypeParts, AFunctionKeepsItsTypeParameters) {
  const Type function = make_func_type({param()}, param(), {param()});
  const Type changed = map_type_children(function, [](const Type&) { return kOne; });
  EXPECT_EQ(changed.as<FuncTypeNode>()->type_params[0], param());
  EXPECT_EQ(changed.as<FuncTypeNode>()->ret_type, kOne);
}

TEST(TypeParts, UnchangedTypesAreTheSameObject) {
  for (const auto& [type, parts] : types_with_parts())
    EXPECT_EQ(map_type_children(type, [](const Type& part) { return part; }), type);
}

TEST(TypeParts, AskedInTheOrderOfTheText) {
  const Type inner = make_tuple_type({kTwo});
  const Type type = make_func_type({make_ref_type(kOne), inner}, inner);
  std::vector<std::string> asked;
  EXPECT_FALSE(any_type(type, [&](const Type& at) {
    asked.emplace_back(at->key());
    return false;
  }));
  EXPECT_EQ(asked, (std::vector<std::string>{"relay.FuncType", "relay.RefType", "relay.TensorType", "relay.TupleType",
                                             "relay.TensorType"}));
  int count = 0;
  EXPECT_TRUE(any_type(type, [&](const Type& at) { return ++count, at.is<RefTypeNode>(); }));
  EXPECT_EQ(count, 2);
  EXPECT_TRUE(any_type(make_ref_type({}), [](const Type& at) { return !at; }));
}

TEST(TypeParts, DeepAndSharedTypesNeedNoStackAndNoTime) {
  Type deep = kOne, wide = kOne;
  for (int i = 0; i < 100000; ++i) deep = make_tuple_type({deep});
  for (int i = 0; i < 100; ++i) wide = make_tuple_type({wide, wide});  // 2^100 leaves
  for (const Type& type : {deep, wide}) {
    EXPECT_FALSE(any_type(type, [](const Type& at) { return at.is<RefTypeNode>(); }));
    EXPECT_TRUE(any_type(type, [](const Type& at) { return at.is<TensorTypeNode>(); }));
  }
}

}  // namespace
}  // namespace headrace
