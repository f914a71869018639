#include "tools/headrace/image_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/descriptor.h"
#include "base/mapped_file.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/python_program.h"
#include "tools/headrace/shown_text.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

namespace {

// Where an input keeps the elements of a pixel.
struct ImagePlace {
  int64_t channels, height, width;
  bool is_channels_last;
};

bool are_channels(int64_t size) { return size == 1 || size == 3; }

[[noreturn]] void refuse_input(const artifact::TensorSpec& spec, const std::string& why) {
  throw_user_error("input '{}' ({}) cannot be an image: {}", shown(spec.name), describe(spec), why);
}

ImagePlace place_of(const artifact::TensorSpec& spec, const std::string& layout) {
  const size_t rank = spec.shape.size();
  if (rank != 3 && rank != 4) refuse_input(spec, fmt::format("it has {} dimensions, not 3 or 4", rank));
  if (rank == 4 && spec.shape[0] != 1)
    refuse_input(spec, "its batch is not 1; make a .npy file with the images of the batch");
  const int64_t* dims = spec.shape.data() + rank - 3;
  if (std::any_of(dims, dims + 3, [](int64_t size) { return size < 1; })) refuse_input(spec, "it has no elements");
  const bool is_first = are_channels(dims[0]) && layout != "nhwc", is_last = are_channels(dims[2]) && layout != "nchw";
  if (is_first && is_last)
    refuse_input(spec, "its first and its last dimension may both be channels; say which with --layout nchw or nhwc");
  if (is_first) return {dims[0], dims[1], dims[2], false};
  if (is_last) return {dims[2], dims[0], dims[1], true};
  refuse_input(spec, fmt::format("no dimension is 1 or 3 channels{}", layout.empty() ? "" : " by --layout " + layout));
}

// Throws UsageError unless an option gives nothing, one number, or one for each channel.
void check_count(const char* option, const std::vector<double>& values, const artifact::TensorSpec& spec,
                 int64_t channels) {
  if (values.size() <= 1 || std::ssize(values) == channels) return;
  throw UsageError(fmt::format("{}: {} values are given, but input '{}' ({}) has {} channel{}", option, values.size(),
                               shown(spec.name), describe(spec), channels, channels == 1 ? "" : "s"));
}

// Returns a value for each channel, of those that check_count() accepts.
std::vector<double> by_channel(const std::vector<double>& values, double otherwise, int64_t channels) {
  if (std::ssize(values) == channels) return values;
  return std::vector<double>(static_cast<size_t>(channels), values.empty() ? otherwise : values[0]);
}

void check_options(const artifact::TensorSpec& spec, const ImagePlace& place, const ImageOptions& options) {
  const bool has_arithmetic = options.scale || !options.mean.empty() || !options.std.empty();
  if (!spec.dtype.is_float() && spec.dtype != DataType::uint(8))
    refuse_input(spec, "pixels are given to inputs of floats or of uint8");
  if (!spec.dtype.is_float() && has_arithmetic)
    throw UsageError(fmt::format("--scale, --mean and --std are for inputs of floats, and input '{}' is {}",
                                 shown(spec.name), describe(spec)));
  check_count("--mean", options.mean, spec, place.channels);
  check_count("--std", options.std, spec, place.channels);
  if (place.channels == 1 && !options.channels.empty())
    throw UsageError(fmt::format("--channels: input '{}' ({}) has one channel, which is grey; leave the option out",
                                 shown(spec.name), describe(spec)));
  const auto large = std::find_if(options.mean.begin(), options.mean.end(), [](double x) { return std::abs(x) > 1; });
  if (!options.scale && large != options.mean.end())
    throw UsageError(fmt::format(
        "--mean: {} is a mean of pixels from 0 to 255, but they are scaled to 0 to 1; add --scale 1", *large));
}

// Runs the module; returns its line.
std::string ask_python(const std::vector<std::string>& arguments, const TemporaryFolder& folder) {
  std::vector<std::string> command{python_program(), "-m", "headrace.image_input"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw_user_error("cannot make a pipe to '{}': {}", command[0], std::strerror(errno));
  const Descriptor from(ends[0]), nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor to(ends[1]);
  ChildProcess process;
  if (!process.start(command, nothing.number(), to.number(), folder))
    throw MissingError(
        fmt::format("cannot start '{}', which decodes images; name a Python in HEADRACE_PYTHON", command[0]));
  to.close();
  std::string line;
  char bytes[256];
  for (ssize_t count = 0; (count = read(from.number(), bytes, sizeof bytes)) > 0 || (count < 0 && errno == EINTR);)
    if (count > 0) line.append(bytes, static_cast<size_t>(count));
  return line.substr(0, line.find('\n'));
}

// Throws MissingError unless the line says "ready" or "error".
void check_started(const std::string& line) {
  if (line == "ready" || line.starts_with("error ")) return;
  if (line.starts_with("missing ")) throw MissingError("images are decoded by Pillow: " + line.substr(8));
  throw MissingError(
      fmt::format("images are decoded by '{} -m headrace.image_input', which did not start: install the Python package "
                  "headrace and Pillow, or name their Python in HEADRACE_PYTHON",
                  python_program()));
}

// Returns height x width x channels bytes, red first.
std::shared_ptr<const MappedFile> decode(const std::string& file, const artifact::TensorSpec& spec,
                                         const ImagePlace& place, const ImageOptions& options) {
  MappedFile::open(file, "image");  // throws the usual error for a file that cannot be read
  const TemporaryFolder folder("headrace-image-");
  const std::string pixels = (folder.path() / "pixels").string();
  const std::string line =
      ask_python({"--width", std::to_string(place.width), "--height", std::to_string(place.height), "--channels",
                  std::to_string(place.channels), "--resize", options.resize, "--to", pixels, "--", file},
                 folder);
  check_started(line);
  if (line != "ready")
    throw_user_error("'{}', for input '{}' ({}): {}", file, shown(spec.name), describe(spec), line.substr(6));
  const auto bytes = MappedFile::open(pixels, "file of pixels");
  HEADRACE_CHECK(std::ssize(bytes->bytes()) == place.height * place.width * place.channels,
                 "headrace.image_input wrote {} bytes", bytes->bytes().size());
  return bytes;
}

}  // namespace

bool is_image(const std::string& file) {
  std::string name = file;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name.ends_with(".png") || name.ends_with(".jpg") || name.ends_with(".jpeg");
}

void require_images() { check_started(ask_python({"--check"}, TemporaryFolder("headrace-image-"))); }

NDArray read_image(const std::string& file, const artifact::TensorSpec& spec, const ImageOptions& options) {
  const ImagePlace place = place_of(spec, options.layout);
  check_options(spec, place, options);
  const std::vector<double> mean = by_channel(options.mean, 0, place.channels);
  const std::vector<double> std = by_channel(options.std, 1, place.channels);
  const auto decoded = decode(file, spec, place, options);
  const auto* pixels = reinterpret_cast<const uint8_t*>(decoded->bytes().data());
  NDArray tensor = NDArray::empty(Shape(spec.shape.begin(), spec.shape.end()), spec.dtype);
  const int64_t plane = place.height * place.width;
  const bool is_blue_first = options.channels == "bgr";
  for (int64_t i = 0; i < plane; ++i) {
    for (int64_t c = 0; c < place.channels; ++c) {
      const int64_t source = is_blue_first ? place.channels - 1 - c : c;
      const double pixel = pixels[i * place.channels + source];
      const double scaled = !spec.dtype.is_float() ? pixel : options.scale ? pixel * *options.scale : pixel / 255;
      const auto channel = static_cast<size_t>(c);
      set_element(tensor.tensor(), place.is_channels_last ? i * place.channels + c : c * plane + i,
                  (scaled - mean[channel]) / std[channel]);
    }
  }
  return tensor;
}

}  // namespace headrace::tools
