#include "tools/headrace/input_options.h"

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
}

void InputOptions::add_to(CLI::App& verb) {
  add_files_and_range_to(verb,
                         "An input from a .npy file, or from a .raw or .bin file with the elements alone; FILE.npz "
                         "alone gives all that it names");
  options_.push_back(verb.add_flag("--random", random_,
                                   "Give random numbers to inputs that have no file; --random=SEED chooses which"));
}

void InputOptions::add_random_to(CLI::App& verb) {
  random_ = "1";
  add_files_and_range_to(verb,
                         "An input from a .npy, .raw or .bin file, or all that FILE.npz names; others are random");
  options_.push_back(
      takes(verb.add_option("--seed", random_, "Of the random inputs"), {0, INT64_MAX, 1})->capture_default_str());
}

std::optional<uint64_t> InputOptions::seed() const {
  if (random_.empty()) return std::nullopt;
  if (random_ == "true") return 1;
  return parse_seed("--random", random_);
}

std::vector<NDArray> InputOptions::read(const std::vector<artifact::TensorSpec>& specs,
                                        const std::vector<int64_t>& limits) const {
  std::map<std::string, NDArray> given = read_named(files_, &specs);
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
