#include "lower/stages/stage_reads.h"

#include <gtest/gtest.h>

#include "lower/compute_rule.h"

namespace headrace::lower {
namespace {

using tir::Compute;

Buffer line(const char* name) { return make_buffer(name, DataType::float_(32), to_dims({8})); }

// a = x + x moved; b = a * a; c = a + b
struct Three {
  Buffer x = line("x"), a = line("a"), b = line("b"), c = line("c");
  Compute compute{{x}, {}, {c}};
  Three() {
    compute.stages.push_back(map_stage(a, [&](const Index& i) { return load(x, i) + load(x, {make_int(7) - i[0]}); }));
    compute.stages.push_back(map_stage(b, [&](const Index& i) { return load(a, i) * load(a, i); }));
    compute.stages.push_back(map_stage(c, [&](const Index& i) { return load(a, i) + load(b, i); }));
  }
};

TEST(StageReads, ReadersAndPlaces) {
  const Three three;
  const StageReads reads(three.compute);
  EXPECT_EQ(reads.readers(three.a), (std::set<size_t>{1, 2}));
  EXPECT_EQ(reads.readers(three.c), std::set<size_t>());
  EXPECT_EQ(reads.places(0, three.x).size(), 2u);
  EXPECT_EQ(reads.places(1, three.a).size(), 1u) << "one element, read twice";
  EXPECT_FALSE(reads.reads(1, three.b));
  EXPECT_EQ(reads.buffers(2), (std::vector<Buffer>{three.a, three.b}));
}

TEST(StageReads, FollowChanges) {
  const Three three;
  StageReads reads(three.compute);
  reads.update(2, three.compute.stages[1]);
  EXPECT_EQ(reads.readers(three.b), std::set<size_t>());
  reads.drop(1);
  EXPECT_EQ(reads.readers(three.a), std::set<size_t>{2});
  EXPECT_TRUE(reads.places(1, three.a).empty());
}

TEST(StageReads, SameIndex) {
  const PrimVar i = make_prim_var("i");
  EXPECT_TRUE(same_index({i, make_int(3)}, {i, make_int(3)}));
  EXPECT_FALSE(same_index({i, make_int(3)}, {i, make_int(4)}));
  EXPECT_FALSE(same_index({i}, {i, make_int(0)}));
}

}  // namespace
}  // namespace headrace::lower
