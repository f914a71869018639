#include "base/memory_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

namespace headrace {
namespace {

TEST(MemoryFile, HoldsTheBytesItWasMadeOf) {
  const std::string bytes("a\0b", 3);
  const Descriptor empty = make_memory_file("a test").value_or_throw();
  const Descriptor file = make_memory_file("a test", std::as_bytes(std::span(bytes))).value_or_throw();
  EXPECT_EQ(::lseek(empty.number(), 0, SEEK_END), 0);
  std::string read(8, '?');
  ASSERT_EQ(::pread(file.number(), read.data(), read.size(), 0), 3);
  EXPECT_EQ(read.substr(0, 3), bytes);
}

// A limit on a file's size, and not on the number of open files: UBSan asks with a pipe whether memory can be read.
TEST(MemoryFile, TheSystemsNoNamesWhatItIsFor) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit two_bytes{.rlim_cur = 2, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &two_bytes), 0);
  const std::string bytes = "abc";
  const Expected<Descriptor> file = make_memory_file("the compiled model", std::as_bytes(std::span(bytes)));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.refusal().code, HR_REASON_SYSTEM);
  EXPECT_EQ(file.refusal().message, "no file in memory for the compiled model: File too large");
}

}  // namespace
}  // namespace headrace
