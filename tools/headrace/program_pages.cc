#include "tools/headrace/program_pages.h"

#include <sys/mman.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

namespace headrace::tools {

namespace {

// A mapping as /proc/self/smaps describes it.
struct Mapping {
  uintptr_t begin = 0, end = 0;
  bool is_read_only_file = false;
  int64_t resident = 0;  // kB
  int64_t own = 0;       // kB of pages that differ from the file's
};

// Reads the head of a mapping: "begin-end rwxp offset device inode path". Returns false for any other line.
bool read_head(const std::string& line, Mapping& mapping) {
  std::array<char, 5> access{};
  unsigned long begin = 0, end = 0, inode = 0;
  const int read = std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %lu", &begin, &end, access.data(), &inode);
  if (read != 4) return false;
  mapping = {.begin = begin, .end = end};
  mapping.is_read_only_file = inode != 0 && access[1] == '-' && access[3] == 'p';
  return true;
}

int64_t return_pages(const Mapping& mapping) {
  if (!mapping.is_read_only_file || mapping.own != 0 || mapping.resident == 0) return 0;
  void* begin = reinterpret_cast<void*>(mapping.begin);
  return madvise(begin, mapping.end - mapping.begin, MADV_DONTNEED) == 0 ? mapping.resident * 1024 : 0;
}

}  // namespace

int64_t return_program_pages() {
  std::ifstream maps("/proc/self/smaps");
  int64_t returned = 0;
  Mapping mapping;
  for (std::string line; std::getline(maps, line);) {
    Mapping next;
    if (read_head(line, next)) {
      returned += return_pages(mapping);
      mapping = next;
    }
    std::sscanf(line.c_str(), "Rss: %ld", &mapping.resident);
    std::sscanf(line.c_str(), "Anonymous: %ld", &mapping.own);
  }
  return returned + return_pages(mapping);
}

}  // namespace headrace::tools
