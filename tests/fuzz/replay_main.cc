// A main() for fuzz entries without libFuzzer: replays files and folders, and with --mutations=N also N seeded
// mutations of each file. Any crash or sanitizer report ends it.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "kit/files.h"
#include "kit/mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void replay(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int mutations = 0;
  int replayed = 0;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    constexpr std::string_view kMutations = "--mutations=";
    if (argument.starts_with(kMutations)) {
      std::from_chars(argument.data() + kMutations.size(), argument.data() + argument.size(), mutations);
      continue;
    }
    for (const auto& file : files_of(argument)) {
      const std::string bytes = headrace::kit::read_file(file);
      replay(bytes);
      for (int seed = 0; seed < mutations; ++seed) {
        headrace::kit::Random random(static_cast<uint64_t>(seed));
        replay(headrace::kit::mutate(bytes, random));
      }
      ++replayed;
    }
  }
  std::printf("replayed %d files, %d mutations of each\n", replayed, mutations);
  return replayed > 0 ? 0 : 1;
}
