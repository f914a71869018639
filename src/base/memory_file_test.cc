#include "base/memory_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace headrace {
namespace {

using ::testing::StartsWith;

TEST(MemoryFile, HoldsTheBytesItWasMadeOf) {
  const std::string bytes("a\0b", 3);
  const Descriptor empty = make_memory_file("a test").value_or_throw();
  const Descriptor file = make_memory_file("a test", std::as_bytes(std::span(bytes))).value_or_throw();
  EXPECT_EQ(::lseek(empty.number(), 0, SEEK_END), 0);
  std::string read(8, '?');
  ASSERT_EQ(::pread(file.number(), read.data(), read.size(), 0), 3);
  EXPECT_EQ(read.substr(0, 3), bytes);
}

TEST(MemoryFile, TheSystemsNoNamesWhatItIsFor) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Expected<Descriptor> file = make_memory_file("the compiled model");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.refusal().code, HR_REASON_SYSTEM);
  EXPECT_THAT(file.refusal().message, StartsWith("no file in memory for the compiled model: "));
}

}  // namespace
}  // namespace headrace
