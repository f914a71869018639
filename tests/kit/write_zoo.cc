// Writes generated models as .onnx files, for programs outside the tests.
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "kit/model_zoo.h"
#include "kit/usage.h"

using namespace headrace;

static void write(const std::string& folder, const kit::ZooModel& model, bool is_small) {
  const kit::ZooOptions options = is_small ? kit::small_zoo_options(model) : kit::ZooOptions();
  std::string path = fmt::format("{}/{}.onnx", folder, model.name);
  std::ofstream file(path, std::ios::binary);
  if (file) file << kit::make_zoo_model(model.name, options);
  if (!file.flush()) throw_user_error("cannot write '{}': {}", path, std::generic_category().message(errno));
  std::printf("%s\n", path.c_str());
}

static void check_names(const std::vector<std::string_view>& names) {
  std::vector<std::string> known;
  for (const kit::ZooModel& model : kit::zoo_models()) known.emplace_back(model.name);
  for (const std::string_view name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw_user_error("there is no model '{}'; there are {}", name, fmt::join(known, ", "));
  }
}

static constexpr const char* kUsage =
    "usage: write_zoo FOLDER [MODEL ...] [--small]\n"
    "Writes generated networks with seeded random weights to FOLDER/MODEL.onnx: those named, or all.\n"
    "  --small   at the smallest resolution that is a multiple of 32; a transformer with 2 layers of 2 heads, 16 "
    "tokens\n"
    "            and a vocabulary of 1000\n";

int main(int argc, char** argv) try {
  if (const auto code = kit::exit_for_usage(argc, argv, kUsage, 1, INT_MAX)) return *code;
  std::vector<std::string_view> arguments(argv + 1, argv + argc);
  bool is_small = std::erase(arguments, "--small") > 0;
  if (arguments.empty() || arguments[0].starts_with("-")) return std::fputs(kUsage, stderr), 2;
  std::string folder(arguments[0]);
  check_names({arguments.begin() + 1, arguments.end()});
  for (const kit::ZooModel& model : kit::zoo_models()) {
    bool is_wanted =
        arguments.size() == 1 || std::find(arguments.begin() + 1, arguments.end(), model.name) != arguments.end();
    if (is_wanted) write(folder, model, is_small);
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "write_zoo: %s\n", error.what());
  return 3;
}
