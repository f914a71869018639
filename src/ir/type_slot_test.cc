#include "ir/type_slot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ir/expr.h"

namespace headrace {
namespace {

TEST(TypeSlot, KeepsTheFirstType) {
  const Type first = make_tensor_type(Shape{1}), second = make_tensor_type(Shape{2});
  TypeSlot slot;
  EXPECT_FALSE(slot.is_set());
  EXPECT_EQ(slot.offer(first), first);
  EXPECT_TRUE(slot.is_set());
  EXPECT_EQ(slot.offer(second), first);
  EXPECT_EQ(slot.get(), first);
}

TEST(TypeSlot, RefusesNull) { EXPECT_THROW(TypeSlot().offer({}), InternalError); }

TEST(TypeSlot, IsATypeToReflection) {
  const GlobalVar f = make_global_var("f");
  EXPECT_TRUE(get_field(*f, "checked_type_").is_none());
  const Type type = make_tensor_type(Shape{1});
  f->set_checked_type(type);
  EXPECT_EQ(get_field(*f, "checked_type_").as<Type>(), type);
  EXPECT_THROW(f->set_checked_type(make_tensor_type(Shape{1})), InternalError);
  EXPECT_FALSE(make_object<GlobalVarNode>(*f)->has_checked_type());
}

TEST(TypeSlot, ThreadsAgreeOnTheFirst) {
  constexpr int kThreads = 4, kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    TypeSlot slot;
    std::vector<Type> found(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&slot, &found, i] {
        const Type mine = make_tensor_type(Shape{i});
        const Type before = slot.is_set() ? slot.get() : Type();
        found[static_cast<size_t>(i)] = slot.offer(mine);
        EXPECT_TRUE(!before || before == slot.get());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(found, testing::Each(slot.get()));
  }
}

}  // namespace
}  // namespace headrace
