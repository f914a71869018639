// Writes the toy artifact to the file that the command line names, for tests of other programs.
#include "kit/artifact_kit.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::vector<uint8_t> bytes = headrace::testing::make_artifact(headrace::testing::toy_manifest());
  std::ofstream file(argv[1], std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file.flush() ? 0 : 1;
}
