#include "tools/headrace/input_options.h"

#include <algorithm>

#include "tools/headrace/interruption.h"
#include "tools/headrace/option_text.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

void InputOptions::add_files_and_range_to(CLI::App& verb, const char* what_files) {
  options_.push_back(
      verb.add_option("--input,-i", files_, what_files)->type_name("NAME=FILE")->allow_extra_args(false));
  options_.push_back(verb.add_option("--range", range_,
                                     "Random numbers are uniform from LOW to HIGH, both included (default: normal "
                                     "floats, small integers)")
                         ->type_name("LOW,HIGH"));
  add_images_to(verb);
}

void InputOptions::add_images_to(CLI::App& verb) {
  const size_t first = options_.size();
  options_.push_back(takes_size(verb.add_option("--scale", images_.scale,
                                                "Multiply the pixels of images, from 0 to 255, by this (default: "
                                                "1/255, so that they are from 0 to 1; uint8 inputs take them as they "
                                                "are)"),
                                "1"));
  options_.push_back(verb.add_option("--mean", mean_,
                                     "Subtract these from the scaled pixels: one number, or one for each channel in "
                                     "the input's order (default: 0)")
                         ->type_name("NUMBERS"));
  options_.push_back(
      verb.add_option("--std", std_, "Then divide by these, one number or one for each channel (default: 1)")
          ->type_name("NUMBERS"));
  options_.push_back(takes_word(
      verb.add_option("--layout", images_.layout,
                      "Where the input of an image has its channels (default: the dimension of size 1 or 3)"),
      "layout", {"nchw", "nhwc"}));
  options_.push_back(takes_word(verb.add_option("--channels", images_.channels,
                                                "Order of the three channels of an image (default: rgb); an image for "
                                                "one channel becomes grey"),
                                "order of channels", {"rgb", "bgr"}));
  options_.push_back(takes_word(
      verb.add_option("--resize", images_.resize,
                      "How an image of another size fits: crop (make it cover the input, then cut its middle out), "
                      "stretch (each side by itself), none (an error)")
          ->capture_default_str(),
      "rule", {"crop", "stretch", "none"}));
  for_images_.assign(options_.begin() + static_cast<std::ptrdiff_t>(first), options_.end());
}

bool InputOptions::has_images() const {
  return std::any_of(files_.begin(), files_.end(), [](const std::string& text) { return is_image(text); });
}

void InputOptions::require() const {
  if (!has_images()) return;
  watch_for_interruptions();
  require_images();
}

ImageOptions InputOptions::image_options() const {
  for (const CLI::Option* option : for_images_) {
    if (option->count() > 0 && !has_images())
      throw UsageError(fmt::format("{}: is for images; give one, as in --input x=photo.png", option->get_name()));
  }
  ImageOptions images = images_;
  if (!mean_.empty()) images.mean = parse_numbers("--mean", mean_);
  if (!std_.empty()) images.std = parse_numbers("--std", std_);
  if (std::any_of(images.std.begin(), images.std.end(), [](double x) { return x <= 0; }))
    throw UsageError(fmt::format("--std: '{}' has a number that is not above 0", std_));
  return images;
}

CLI::Option* InputOptions::add_seed_to(CLI::App& verb, const char* what) {
  CLI::Option* option = takes(verb.add_option("--seed", seed_, what), {0, INT64_MAX, 1});
  seed_option_ = option;
  options_.push_back(option);
  return option;
}

void InputOptions::add_to(CLI::App& verb) {
  add_files_and_range_to(
      verb,
      "An input from a .npy file, from a .raw or .bin file with the elements alone, or from an image "
      "(.png, .jpg, .jpeg; needs Pillow); FILE.npz alone gives all that it names");
  options_.push_back(verb.add_flag("--random", random_,
                                   "Give random numbers to inputs that have no file; --random=SEED is --seed SEED"));
  add_seed_to(verb, "As --random, with this seed of the random inputs (default: 1)");
}

void InputOptions::add_random_to(CLI::App& verb) {
  seed_ = "1";
  add_files_and_range_to(
      verb,
      "An input from a .npy, .raw or .bin file or from an image (.png, .jpg, .jpeg; needs Pillow), or all "
      "that FILE.npz names; others are random");
  verb.add_flag("--random", random_)->group("");
  add_seed_to(verb, "Seed of the random inputs")->capture_default_str();
}

std::optional<uint64_t> InputOptions::seed() const {
  if (!random_.empty() && random_ != "true") {
    if (seed_option_->count() > 0) throw UsageError("--random: it has a seed and --seed has another; leave one out");
    return parse_seed("--random", random_);
  }
  if (!seed_.empty()) return parse_seed("--seed", seed_);
  return random_.empty() ? std::nullopt : std::optional<uint64_t>(1);
}

std::vector<NDArray> InputOptions::read(const std::vector<artifact::TensorSpec>& specs,
                                        const std::vector<int64_t>& limits) const {
  const ImageOptions images = image_options();
  std::map<std::string, NDArray> given = read_named(files_, {.specs = &specs, .images = &images});
  const std::optional<uint64_t> seed = this->seed();
  std::optional<RandomRange> range;
  if (!range_.empty()) range = parse_range("--range", range_);
  if (range && !seed) throw UsageError("--range: is for random inputs; add --random");
  if (seed) {
    for (size_t i = 0; i < specs.size(); ++i) {
      if (given.contains(specs[i].name)) continue;
      given.emplace(specs[i].name, random_tensor(specs[i], *seed, i < limits.size() ? limits[i] : kRandomLimit, range));
    }
  }
  return in_order(specs, given);
}

}  // namespace headrace::tools
