// Images as inputs: PNG and JPEG files, which Pillow decodes in a Python process: `python3 -m headrace.image_input`.
//
// An image of any size is turned upright as its EXIF orientation says, resized to the input's height and width, and
// given the input's channels: three colours or one grey. Element c of a pixel becomes (pixel * scale - mean[c]) /
// std[c], computed in float64 and rounded once to the input's dtype.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "tensor/ndarray.h"

namespace headrace::tools {

struct ImageOptions {
  std::vector<double> mean, std;  // one for all channels, or one for each of the input's; empty: 0 and 1
  std::optional<double> scale;    // default: 1/255 for floats; uint8 inputs take the pixels as they are
  std::string layout;             // "nchw", "nhwc"; empty: found by the dimension that has 1 or 3 channels
  std::string resize = "crop";    // "crop": cover the input and cut the middle out; "stretch"; "none": an error
  std::string channels;           // "rgb", "bgr"; empty: "rgb"
};

// Returns whether the file's name ends with .png, .jpg or .jpeg, in any case.
bool is_image(const std::string& file);

// Throws MissingError when Python, the package headrace or Pillow is not installed.
void require_images();

// Reads an image for the input `spec`: float or uint8 of shape [H,W,C], [C,H,W], or these after a batch of 1. Call
// watch_for_interruptions() before threads are started. Throws UserError for a file or an input that does not fit,
// UsageError for options that do not fit the input, MissingError as require_images().
NDArray read_image(const std::string& file, const artifact::TensorSpec& spec, const ImageOptions& options);

}  // namespace headrace::tools
