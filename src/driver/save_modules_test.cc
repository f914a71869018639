#include "driver/save_modules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"

namespace headrace::driver {
namespace {

using namespace runtime;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A module whose bytes are given, or whose saving throws.
class FakeBody : public ModuleBody {
 public:
  FakeBody(std::string kind, std::string bytes) : kind_(std::move(kind)), bytes_(std::move(bytes)) {}
  std::string_view type_key() const override { return kind_; }
  PackedFunc get_function(const std::string&, const Module&) override { return {}; }
  std::string save_to_binary(const Module&) const override {
    if (bytes_ == "user") throw_user_error("the disk is full");
    if (bytes_ == "std") throw std::runtime_error("no device");
    if (bytes_ == "ours") throw InternalError("a defect");
    return bytes_;
  }

 private:
  std::string kind_, bytes_;
};

Module fake(const std::string& bytes, const std::string& kind = "fake") {
  return Module(std::make_unique<FakeBody>(kind, bytes));
}

std::string error_of(const std::vector<Module>& roots) {
  return kit::user_error_of([&] { save_modules(roots); });
}

TEST(SaveModules, NoneAndEmptyOnes) {
  EXPECT_TRUE(save_modules({}).rows.empty());
  const std::vector<Module> roots = {fake("")};
  const SavedModules saved = save_modules(roots);
  EXPECT_THAT(saved.blobs, ElementsAre(""));
  EXPECT_EQ(saved.rows[0].loader, "fake");
  EXPECT_EQ(saved.rows[0].section, ".headrace.blob.0");
}

// Roots a and d; a imports b and c, b and c share e; d imports c.
TEST(SaveModules, ImportersComeFirstAndEachModuleOnce) {
  const Module a = fake("a"), b = fake("b"), c = fake("c"), d = fake("d", "other"), e = fake("e");
  a.Import(b);
  a.Import(c);
  b.Import(e);
  c.Import(e);
  d.Import(c);
  const std::vector<Module> roots = {a, d};
  const SavedModules saved = save_modules(roots);
  EXPECT_THAT(saved.blobs, ElementsAre("a", "b", "d", "c", "e"));
  EXPECT_THAT(saved.roots, ElementsAre(0, 2));
  EXPECT_THAT(saved.rows[0].imports, ElementsAre(1, 3));
  EXPECT_THAT(saved.rows[1].imports, ElementsAre(4));
  EXPECT_THAT(saved.rows[2].imports, ElementsAre(3));
  EXPECT_THAT(saved.rows[3].imports, ElementsAre(4));
  EXPECT_THAT(saved.rows[4].imports, ElementsAre());
  EXPECT_EQ(saved.rows[2].loader, "other");
  EXPECT_EQ(saved.rows[4].section, ".headrace.blob.4");
}

TEST(SaveModules, LongChainsNeedNoStack) {
  constexpr int kLength = 2000;
  const Module first = fake("0");
  // Importing looks for cycles below the import: built from the top, that is nothing.
  Module last = first;
  for (int i = 1; i < kLength; ++i) {
    const Module next = fake(std::to_string(i));
    last.Import(next);
    last = next;
  }
  const SavedModules saved = save_modules({&first, 1});
  ASSERT_EQ(saved.rows.size(), size_t{kLength});
  EXPECT_EQ(saved.blobs.back(), std::to_string(kLength - 1));
  EXPECT_THAT(saved.rows[100].imports, ElementsAre(101));
}

TEST(SaveModules, ARootMayBeImportedAgainAfterItsImporter) {
  const Module a = fake("a"), b = fake("b");
  a.Import(b);
  const std::vector<Module> after = {a, b, a};
  EXPECT_THAT(save_modules(after).blobs, ElementsAre("a", "b"));
  EXPECT_THAT(error_of({b, a}), HasSubstr("the external module of kind 'fake' before a module that imports it too"));
}

TEST(SaveModules, Errors) {
  EXPECT_EQ(error_of({fake("a"), Module()}), "external module 1 of the model is null");
  EXPECT_EQ(error_of({fake("user")}), "the external module of kind 'fake' is not saved: the disk is full");
  EXPECT_EQ(error_of({fake("std", "gpu")}), "the external module of kind 'gpu' is not saved: no device");
  EXPECT_THAT(error_of({fake("a", "")}), HasSubstr("an external module's kind, '', is not a name"));
  EXPECT_THAT(error_of({fake("a", "\xff")}), HasSubstr("is not a name"));
  const Module outer = fake("a");
  outer.Import(fake("user", "inner"));
  EXPECT_THAT(error_of({outer}), HasSubstr("of kind 'inner' is not saved"));
  const std::vector<Module> defect = {fake("ours")};
  EXPECT_THROW(save_modules(defect), InternalError);
}

}  // namespace
}  // namespace headrace::driver
