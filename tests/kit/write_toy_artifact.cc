// Writes the toy artifact to the file that the command line names, for tests of other programs.
#include "kit/artifact_kit.h"
#include "kit/usage.h"

constexpr const char* kUsage =
    "usage: write_toy_artifact FILE\n"
    "Writes a small artifact with two inputs and two outputs, for trying c-host and c-client.\n";

int main(int argc, char** argv) {
  if (const auto code = headrace::kit::exit_for_usage(argc, argv, kUsage, 1, 1)) return *code;
  const std::vector<uint8_t> bytes = headrace::testing::make_artifact(headrace::testing::toy_manifest());
  std::ofstream file(argv[1], std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (file.flush()) return 0;
  std::fprintf(stderr, "write_toy_artifact: cannot write '%s'\n", argv[1]);
  return 3;
}
