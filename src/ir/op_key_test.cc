// Keys and handles of ops: found by name once, compared as numbers and pointers from then on.
#include "ir/op_key.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "ir/op_handle.h"
#include "ir/op_table.h"

namespace headrace {
namespace {

constexpr OpKey<int> kWeight{"op_key_test.weight"};
constexpr OpKey<int> kWeightAgain{"op_key_test.weight"};
constexpr OpKey<std::string> kLabel{"op_key_test.label"};

TEST(OpKey, KeysOfOneNameAreOneKey) {
  const Op op = make_op("op_key_test.one");
  EXPECT_EQ(op->find(kWeight), nullptr);
  op->set(kWeight, 3);
  op->set(kLabel, std::string("light"));
  ASSERT_NE(op->find(kWeightAgain), nullptr);
  EXPECT_EQ(*op->find(kWeightAgain), 3);
  EXPECT_EQ(*op->find(kLabel), "light");
  EXPECT_EQ(kWeight.slot(), kWeightAgain.slot());
  EXPECT_NE(kWeight.slot(), kLabel.slot());
  EXPECT_EQ(make_op("op_key_test.other")->find(kLabel), nullptr);
}

TEST(OpKey, AValueOfAnotherTypeIsNotFound) {
  const Op op = make_op("op_key_test.type");
  op->set(kWeight, 3);
  EXPECT_EQ(op->find(OpKey<std::string>{"op_key_test.weight"}), nullptr);
  ASSERT_NE(op->find_any("op_key_test.weight"), nullptr);
  EXPECT_EQ(std::any_cast<int>(*op->find_any("op_key_test.weight")), 3);
}

TEST(OpKey, AnErasedValueIsGone) {
  const Op op = make_op("op_key_test.erase");
  op->set(kWeight, 3);
  op->erase("op_key_test.weight");
  op->erase("op_key_test.no_key_has_this_name");
  EXPECT_EQ(op->find(kWeight), nullptr);
  EXPECT_EQ(op->find_any("op_key_test.weight"), nullptr);
  EXPECT_EQ(op->find_any("op_key_test.no_key_has_this_name"), nullptr);
}

TEST(OpKey, ThreadsThatAskFirstGetOneSlot) {
  static constexpr OpKey<int> kShared{"op_key_test.shared"};
  std::vector<size_t> slots(8);
  std::vector<std::thread> threads;
  for (size_t& slot : slots) threads.emplace_back([&slot] { slot = kShared.slot(); });
  for (std::thread& thread : threads) thread.join();
  for (const size_t slot : slots) EXPECT_EQ(slot, kShared.slot());
}

// Reads while another thread replaces and erases values, and makes slots that were not there.
TEST(OpKey, ValuesAreReadWhileTheyAreSet) {
  const Op op = make_op("op_key_test.raced");
  op->set(kLabel, std::string("long enough that the text has memory of its own: 0"));
  std::atomic<bool> is_over = false;
  std::atomic<int> wrong = 0;
  std::thread reader([&] {
    while (!is_over) {
      const std::string* label = op->find(kLabel);
      if (label != nullptr && !label->starts_with("long enough")) ++wrong;
      const int* weight = op->find(kWeight);
      if (weight != nullptr && *weight < 0) ++wrong;
    }
  });
  for (int i = 0; i < 2000; ++i) {
    op->set(kLabel, fmt::format("long enough that the text has memory of its own: {}", i));
    if (i % 3 == 0) op->erase(kWeight.name);
    op->set(kWeight, i);
    op->values.set(5000 + static_cast<size_t>(i), std::any(i));
  }
  is_over = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(*op->find(kWeight), 1999);
  for (int i = 0; i < 2000; ++i) EXPECT_EQ(std::any_cast<int>(*op->values.find(5000 + static_cast<size_t>(i))), i);
  EXPECT_EQ(op->values.find(7000), nullptr);
}

TEST(OpHandle, IsTheRegisteredOp) {
  static constexpr OpHandle kHandle{"op_key_test.handled"};
  const Op op = register_op("op_key_test.handled"), other = register_op("op_key_test.unhandled");
  EXPECT_EQ(&kHandle.node(), op.get());
  EXPECT_TRUE(kHandle.is(op.get()));
  EXPECT_FALSE(kHandle.is(other.get()));
  EXPECT_FALSE(kHandle.is(nullptr));
}

TEST(OpHandle, ANameThatIsNotRegisteredIsOurFault) {
  static constexpr OpHandle kHandle{"op_key_test.nobody"};
  try {
    kHandle.node();
    FAIL() << "there is no such op";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("no op is registered as 'op_key_test.nobody'"), std::string::npos)
        << error.what();
  }
  const Op op = register_op("op_key_test.nobody");  // found once there is one
  EXPECT_EQ(&kHandle.node(), op.get());
}

}  // namespace
}  // namespace headrace
