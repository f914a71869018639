#include "base/exit_code.h"

#include <gtest/gtest.h>

#include <new>
#include <system_error>

#include "base/expected.h"

namespace headrace {
namespace {

TEST(ExitCode, SaysWhoseFaultItIs) {
  EXPECT_EQ(exit_code_of(UserError("a bad model")), HR_USER);
  EXPECT_EQ(exit_code_of(UsageError("a bad option")), HR_USAGE);
  EXPECT_EQ(exit_code_of(MissingError("no backend")), HR_MISSING_DEPENDENCY);
  EXPECT_EQ(exit_code_of(InternalError("a defect")), HR_INTERNAL);
  EXPECT_EQ(exit_code_of(std::bad_alloc()), HR_USER);
  EXPECT_EQ(exit_code_of(std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again))), HR_USER);
  EXPECT_EQ(exit_code_of(std::system_error(std::make_error_code(std::errc::io_error))), HR_INTERNAL);
  EXPECT_EQ(exit_code_of(std::runtime_error("not ours")), HR_INTERNAL);
  // As they come from Python.
  EXPECT_EQ(exit_code_of(Error("UserError", "no", {})), HR_USER);
  EXPECT_EQ(exit_code_of(Error("DiagnosticError", "no", {})), HR_USER);
  EXPECT_EQ(exit_code_of(Error("MissingError", "no", {})), HR_MISSING_DEPENDENCY);
  EXPECT_EQ(exit_code_of(Error("TypeError", "no", {})), HR_INTERNAL);
}

TEST(ExitCode, RefusalsAreErrorsOfTheSameCode) {
  for (const auto& [reason, code] :
       {std::pair(HR_REASON_BACKEND_MISSING, HR_MISSING_DEPENDENCY),
        std::pair(HR_REASON_DEVICE_MISSING, HR_MISSING_DEPENDENCY),
        std::pair(HR_REASON_CPU_FEATURE_MISSING, HR_MISSING_DEPENDENCY), std::pair(HR_REASON_NOT_FOUND, HR_USER)}) {
    EXPECT_EQ(exit_code_of(reason), code);
    try {
      Expected<int>(Refusal{reason, "no"}).value_or_throw();
      ADD_FAILURE() << "it did not throw";
    } catch (const UserError& error) {
      EXPECT_EQ(exit_code_of(error), code);
      EXPECT_EQ(error.message(), "no");
    }
  }
}

TEST(Expected, GivesItsValue) {
  const Expected<std::string> kept(std::string("kept"));
  EXPECT_EQ(kept.value_or_throw(), "kept");
  EXPECT_EQ(Expected<std::string>(std::string("moved")).value_or_throw(), "moved");
}

}  // namespace
}  // namespace headrace
