// Which names of regions the C text may have.
#include "backends/ccompiler/compile/names.h"

#include <gmock/gmock.h>

namespace headrace::backends::ccompiler {
namespace {

using ::testing::HasSubstr;

TEST(RegionNames, OfFunctionsInC) {
  for (const char* name : {"f", "tvmgen_default_ccompiler_main_0", "Fast", "expand", "int8", "free_"})
    EXPECT_EQ(name_fault(name, {}), "") << name;
  for (const char* name : {"", "9f", "a b", "f;int x", "größe", "a\nb", "a*/b", "a.b", "a-b"})
    EXPECT_THAT(name_fault(name, {}), HasSubstr("is not a name of a function in C; rename it")) << name;
}

TEST(RegionNames, WordsOfCAreTaken) {
  for (const char* name : {"float", "memcpy", "malloc", "int64_t", "NAN", "exp", "expf", "sinl", "__f", "_F",
                           "hr_kernel", "HR_ALIGNMENT", "DLTensor", "kDLCPU", "main"})
    EXPECT_THAT(name_fault(name, {}), HasSubstr("has a meaning in C or its headers; rename it")) << name;
}

TEST(RegionNames, FunctionsOfARegionAreTaken) {
  for (const char* other : {"f", "f_", "f__wrapper_", "f_0", "f_12", "f_c3"}) {
    EXPECT_THAT(name_fault(other, {"f"}), HasSubstr("give functions of one name in C; rename one")) << other;
    EXPECT_THAT(name_fault("f", {other}), HasSubstr("give functions of one name in C")) << other;
  }
  for (const char* other : {"g", "ff", "f_x", "f_c", "f_1x", "f_cx", "f0"})
    EXPECT_EQ(name_fault(other, {"f"}), "") << other;
}

}  // namespace
}  // namespace headrace::backends::ccompiler
