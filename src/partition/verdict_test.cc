// Answers of users' checks as verdicts, and the reasons that a refusal may have.
#include "partition/verdict.h"

#include <gtest/gtest.h>

#include "base/reason_name.h"
#include "kit/errors.h"
#include "object/array.h"

namespace headrace::partition {
namespace {

std::string read(const Value& answer) {
  const Verdict verdict = read_answer(answer, "the check");
  return fmt::format("{} '{}'", reason_name(verdict.reason), verdict.message);
}

Value pair_of(int64_t reason, const std::string& message) { return Value(Array<Value>{Value(reason), Value(message)}); }

TEST(Answers, HaveOneMeaning) {
  EXPECT_EQ(read(Value(true)), "NONE ''");
  EXPECT_EQ(read(Value(int64_t{2})), "NONE ''");
  EXPECT_EQ(read(Value(false)), "OP_UNSUPPORTED ''");
  EXPECT_EQ(read(Value(int64_t{0})), "OP_UNSUPPORTED ''");
  EXPECT_EQ(read(Value()), "OP_UNSUPPORTED ''");
  EXPECT_EQ(read(Value(std::string("is odd"))), "OP_UNSUPPORTED 'is odd'");
  EXPECT_EQ(read(Value(std::string())), "OP_UNSUPPORTED ''");
  EXPECT_EQ(read(pair_of(22, "is no float")), "DTYPE_UNSUPPORTED 'is no float'");
}

TEST(Answers, OthersAreErrors) {
  const auto error = [](const Value& answer) { return kit::user_error_of([&] { read(answer); }); };
  EXPECT_EQ(error(Value(0.5)), "the check gave 0.5; it must give True or False, or a string that says why not");
  const Value chosen = pair_of(HR_REASON_PLACE_BY_COST, "no"), failed = pair_of(HR_REASON_BACKEND_FAILED, "no");
  for (const Value& wrong : {pair_of(0, "no"), pair_of(127, "no"), chosen, failed, Value(Array<Value>{Value(22)})})
    EXPECT_NE(error(wrong).find("the check gave "), std::string::npos);
}

TEST(Answers, VerdictsAreWrittenAsAnswers) {
  EXPECT_EQ(read(answer_of({})), "NONE ''");
  EXPECT_EQ(read(answer_of({.reason = HR_REASON_DATA_DEPENDENT, .message = "is off"})), "DATA_DEPENDENT 'is off'");
  EXPECT_EQ(read(answer_of({.reason = HR_REASON_OP_UNSUPPORTED})), "OP_UNSUPPORTED ''");
}

TEST(RefusalReasons, AreThoseOfOps) {
  EXPECT_EQ(read_refusal_reason("DTYPE_UNSUPPORTED"), HR_REASON_DTYPE_UNSUPPORTED);
  EXPECT_TRUE(is_refusal_reason(HR_REASON_OP_UNSUPPORTED));
  EXPECT_TRUE(is_refusal_reason(HR_REASON_BAD_MODEL));
  EXPECT_FALSE(is_refusal_reason(HR_REASON_NONE));
  EXPECT_FALSE(is_refusal_reason(HR_REASON_FUSE_PATTERN));
  EXPECT_EQ(kit::user_error_of([] { read_refusal_reason("FUSE_DEPTH"); }),
            "'FUSE_DEPTH' is not a reason why a backend takes no call; the reasons are OP_UNSUPPORTED, "
            "ATTRIBUTE_UNSUPPORTED, DTYPE_UNSUPPORTED, SHAPE_UNSUPPORTED, OPSET_UNSUPPORTED, DYNAMIC_UNSUPPORTED, "
            "DATA_DEPENDENT, BAD_MODEL");
}

}  // namespace
}  // namespace headrace::partition
