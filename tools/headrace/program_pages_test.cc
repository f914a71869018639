#include "tools/headrace/program_pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

namespace headrace::tools {
namespace {

constexpr size_t kBytes = 1 << 20;

// Maps a file of kBytes letters for reading and, as the dynamic linker does before relocations, for own changes.
char* map_letters(const std::string& path) {
  std::ofstream(path) << std::string(kBytes, 'a');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* begin = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  return begin == MAP_FAILED ? nullptr : static_cast<char*>(begin);
}

bool are_all(const char* begin, char letter) { return std::string(begin, kBytes) == std::string(kBytes, letter); }

// Returns the kB of the mapping at `begin` that are in memory.
int64_t resident_at(const char* begin) {
  std::ifstream maps("/proc/self/smaps");
  const std::string head = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(begin));
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.starts_with(head)) is_inside = true;
    if (is_inside && line.starts_with("Rss:")) return std::stoll(line.substr(4));
  }
  return -1;
}

TEST(ProgramPages, AreReturnedUnlessTheProcessChangedThem) {
  const std::string path = testing::TempDir() + "program_pages_test";
  char* read = map_letters(path);
  char* changed = map_letters(path);
  ASSERT_TRUE(read != nullptr && changed != nullptr);
  ASSERT_TRUE(are_all(read, 'a'));
  std::memset(changed, 'b', kBytes);
  for (char* begin : {read, changed}) ASSERT_EQ(mprotect(begin, kBytes, PROT_READ), 0);
  ASSERT_EQ(resident_at(read), kBytes / 1024);

  EXPECT_GE(return_program_pages(), static_cast<int64_t>(kBytes));
  EXPECT_EQ(resident_at(read), 0);
  EXPECT_EQ(resident_at(changed), kBytes / 1024);
  EXPECT_TRUE(are_all(read, 'a'));
  EXPECT_TRUE(are_all(changed, 'b'));
  for (char* begin : {read, changed}) munmap(begin, kBytes);
  unlink(path.c_str());
}

}  // namespace
}  // namespace headrace::tools
