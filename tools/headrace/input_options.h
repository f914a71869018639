// The options that say what a run reads: files with tensors or images, and random numbers.
#pragma once

#include <CLI/App.hpp>

#include "tools/headrace/image_input.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

class InputOptions {
 public:
  // Adds --input, --random, --seed, --range and the options of images to a verb whose inputs are files unless the user
  // asks for random ones, which --seed does, too.
  void add_to(CLI::App& verb);
  // Adds --input, --seed, --range and the options of images to a verb that gives random numbers to inputs that have no
  // file. --random is accepted but not shown, so that one spelling works for all verbs.
  void add_random_to(CLI::App& verb);

  const std::vector<std::string>& files() const { return files_; }
  // Returns whether a file is an image, which a child process decodes: call watch_for_interruptions() early.
  bool has_images() const;
  // Call before work that takes time and before threads are started. Throws MissingError if there are images and what
  // decodes them is not installed.
  void require() const;
  // Returns the inputs in the order of `specs`. Random integers of input i are below limits[i] (kRandomLimit beyond the
  // end) unless there is a range. Throws UserError for an input without a file or of another type, and for a file that
  // cannot be read; UsageError for a malformed option.
  std::vector<NDArray> read(const std::vector<artifact::TensorSpec>& specs,
                            const std::vector<int64_t>& limits = {}) const;
  // Returns the options that were added and are shown.
  const std::vector<CLI::Option*>& options() const { return options_; }

 private:
  void add_files_and_range_to(CLI::App& verb, const char* what_files);
  void add_images_to(CLI::App& verb);
  CLI::Option* add_seed_to(CLI::App& verb, const char* what);
  ImageOptions image_options() const;
  // Returns the seed; nothing if inputs without a file are errors. Throws UsageError for two seeds and for a wrong one.
  std::optional<uint64_t> seed() const;

  std::vector<std::string> files_;
  std::string random_;  // the value of --random; "true": it has none; empty: the option is not given
  std::string seed_;    // the value of --seed; empty: the option is not given and has no default
  const CLI::Option* seed_option_ = nullptr;
  std::string range_;
  ImageOptions images_;
  std::string mean_, std_;  // texts of the options for images
  std::vector<const CLI::Option*> for_images_;
  std::vector<CLI::Option*> options_;
};

}  // namespace headrace::tools
