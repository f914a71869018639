// Runs a fuzz target over the files of a folder, in name order: the seed corpus as a test, without libFuzzer.
#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::filesystem::path> list_files(const char* folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

void replay(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  fmt::print("{}\n", file.string());
  std::fflush(stdout);  // a crash must not hide which file it was
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    fmt::print(stderr, "usage: {} CORPUS_FOLDER\n", argv[0]);
    return 2;
  }
  const auto files = list_files(argv[1]);
  for (const auto& file : files) replay(file);
  fmt::print("{} inputs\n", files.size());
  return files.empty() ? 1 : 0;
}
