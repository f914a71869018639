#include "object/object_map.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <unordered_map>

#include "kit/random.h"
#include "object/object.h"

namespace headrace {
namespace {

TEST(ObjectMap, KeepsTheFirstValueOfAKey) {
  Object a, b;
  ObjectMap<std::string> map;
  EXPECT_EQ(map.find(&a), nullptr);
  EXPECT_TRUE(map.try_emplace(&a, "first").second);
  const auto [value, is_new] = map.try_emplace(&a, "second");
  EXPECT_FALSE(is_new);
  EXPECT_EQ(*value, "first");
  EXPECT_FALSE(map.contains(&b));
  *map.find(&a) = "changed";
  EXPECT_EQ(*map.find(&a), "changed");
  EXPECT_EQ(map.size(), 1u);
}

// Addresses of a heap, in one block and far apart; std::unordered_map is the oracle.
TEST(ObjectMap, HoldsWhatAMapHolds) {
  kit::Random random(1);
  std::vector<std::unique_ptr<Object>> apart;
  for (int i = 0; i < 3000; ++i) apart.push_back(std::make_unique<Object>());
  const std::unique_ptr<Object[]> block(new Object[3000]);
  std::unordered_map<const Object*, int> expected;
  ObjectMap<int> map;
  const auto any = [&] { return random.chance(0.5f) ? apart[random.index(3000)].get() : &block[random.index(3000)]; };
  for (int i = 0; i < 10'000; ++i) {
    const Object* key = any();
    const bool is_new = expected.try_emplace(key, i).second;
    ASSERT_EQ(map.try_emplace(key, i).second, is_new);
    const Object* other = any();
    const auto known = expected.find(other);
    const int* found = map.find(other);
    ASSERT_EQ(found != nullptr, known != expected.end());
    if (found != nullptr) {
      ASSERT_EQ(*found, known->second);
    }
  }
  EXPECT_EQ(map.size(), expected.size());
}

TEST(ObjectMap, RoomMadeInAdvanceKeepsWhatIsThere) {
  const std::unique_ptr<Object[]> block(new Object[200]);
  ObjectMap<int> map;
  for (int i = 0; i < 200; ++i) {
    if (i % 50 == 0) map.reserve(static_cast<size_t>(i) * 3);
    map.try_emplace(&block[i], i);
  }
  map.reserve(1);  // takes no room away
  EXPECT_EQ(map.size(), 200u);
  for (int i = 0; i < 200; ++i) ASSERT_EQ(*map.find(&block[i]), i);
}

}  // namespace
}  // namespace headrace
