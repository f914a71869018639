// write_zoo FOLDER [MODEL ...] [--small]: writes generated models as .onnx files (--small: at the smallest resolution
// that is a multiple of 32), for programs outside the tests.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kit/model_zoo.h"

using namespace headrace;

static void write(const std::string& folder, const kit::ZooModel& model, bool is_small) {
  kit::ZooOptions options;
  if (is_small && model.resolution > 0)
    options.resolution = (std::max<int64_t>(model.smallest_resolution, 32) + 31) / 32 * 32;
  std::string path = fmt::format("{}/{}.onnx", folder, model.name);
  std::ofstream file(path, std::ios::binary);
  file << kit::make_zoo_model(model.name, options);
  if (!file.flush()) throw_user_error("cannot write '{}'", path);
  std::printf("%s\n", path.c_str());
}

int main(int argc, char** argv) try {
  std::vector<std::string_view> arguments(argv + 1, argv + argc);
  bool is_small = std::erase(arguments, "--small") > 0;
  if (arguments.empty()) throw_user_error("usage: write_zoo FOLDER [MODEL ...] [--small]");
  std::string folder(arguments[0]);
  for (const kit::ZooModel& model : kit::zoo_models()) {
    bool is_wanted =
        arguments.size() == 1 || std::find(arguments.begin() + 1, arguments.end(), model.name) != arguments.end();
    if (is_wanted) write(folder, model, is_small);
  }
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
