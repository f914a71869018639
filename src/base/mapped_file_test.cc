// MappedFile: the bytes of a file, whole, whatever happens to its name.
#include "base/mapped_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "kit/errors.h"
#include "kit/files.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

std::string counted(size_t size) {
  std::string bytes(size, 0);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    const auto number = static_cast<uint32_t>(i);
    std::memcpy(bytes.data() + i, &number, 4);
  }
  return bytes;
}

fs::path test_folder() {
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("mapped_file_{}", ::getpid());
  fs::create_directories(folder);
  return folder;
}

bool equals(const MappedFile& file, const std::string& bytes) {
  if (file.bytes().size() != bytes.size()) return false;
  return bytes.empty() || std::memcmp(file.bytes().data(), bytes.data(), bytes.size()) == 0;
}

// Large files are read by two threads; the border between their halves is nowhere special.
TEST(MappedFile, HasAllBytesOfAnySize) {
  const fs::path folder = test_folder();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{5000}, (size_t{16} << 20) - 1, (size_t{16} << 20) + 3}) {
    const std::string bytes = counted(size);
    kit::write_file(folder / "file", bytes);
    EXPECT_TRUE(equals(*MappedFile::open((folder / "file").string(), "file"), bytes)) << size;
  }
}

// A file that is replaced by a rename, as writers of whole files do, is the old one or the new one to each reader.
TEST(MappedFile, ARenameIsNoWrite) {
  const fs::path folder = test_folder();
  const std::string bytes = counted(size_t{24} << 20);
  kit::write_file(folder / "file", bytes);
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    while (!is_over) {
      fs::create_hard_link(folder / "file", folder / "next");
      fs::rename(folder / "next", folder / "other");
      fs::remove(folder / "other");
    }
  });
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(equals(*MappedFile::open((folder / "file").string(), "file"), bytes));
  is_over = true;
  writer.join();
}

TEST(MappedFile, AFileThatIsWrittenMeanwhileIsRefused) {
  const fs::path folder = test_folder();
  kit::write_file(folder / "file", counted(size_t{24} << 20));
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    std::fstream file(folder / "file", std::ios::binary | std::ios::in | std::ios::out);
    while (!is_over) {
      file.seekp(100);
      file.put('x').flush();
    }
  });
  std::string error;
  for (int i = 0; i < 50 && error.empty(); ++i)
    error = kit::user_error_of([&] { MappedFile::open((folder / "file").string(), "array file"); });
  is_over = true;
  writer.join();
  EXPECT_NE(error.find("was written to while it was read; try again when its writer is done"), std::string::npos);
}

}  // namespace
}  // namespace headrace
