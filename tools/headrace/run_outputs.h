// The outputs of a run: their files, and what is said of them.
#pragma once

#include <CLI/App.hpp>

#include <string>
#include <vector>

#include "artifact/tensor_spec.h"
#include "object/array.h"
#include "tensor/ndarray.h"
#include "tools/headrace/file_uses.h"
#include "tools/headrace/verbs.h"

namespace headrace::tools {

// Finds the file of each output before the run, in a folder that is made; empty names without a folder. Adds them to
// `uses`, which the caller checks. UserError for a folder or name that cannot be.
std::vector<std::string> output_files(const std::string& folder, const std::vector<artifact::TensorSpec>& outputs,
                                      FileUses& uses);

// How many elements of an output are shown.
struct OutputValues {
  int first = 8;                         // number of the first values that are shown
  int top = 0;                           // number of the largest values that are shown, in each row of the last axis
  std::vector<std::string> labels = {};  // names for the places of a row, in outputs with rows of so many elements
};
// Reads labels, one a line. Throws UserError for a file without any or with text that is not UTF-8.
std::vector<std::string> read_labels(const std::string& file);
// Throws UserError if there are labels, but not as many as any output has elements in a row.
void check_labels(const std::vector<std::string>& labels, const std::vector<artifact::TensorSpec>& outputs);

// The options of a verb that say which elements of the outputs it shows.
class OutputValueOptions {
 public:
  // Adds --values, --top and --labels.
  void add_to(CLI::App& verb);
  // Returns what the options say, with the labels. Call before the run, so that a mistake in them is reported at once.
  // Throws UsageError for labels without --top, UserError as read_labels().
  OutputValues read() const;
  const std::string& labels_file() const { return labels_; }

 private:
  OutputValues values_;
  std::string labels_;  // a file
};

struct DescribedOutputs {
  Array<Value> report = {};                         // an object for each output
  std::vector<std::vector<std::string>> rows = {};  // a table
  std::vector<std::string> values = {};             // lines with elements
};
// Describes outputs: name, type, the extent of their elements, file, and elements. Shapes and dtypes are those of the
// tensors.
DescribedOutputs describe_outputs(const std::vector<artifact::TensorSpec>& specs, const std::vector<NDArray>& outputs,
                                  const std::vector<std::string>& files, const OutputValues& values);

}  // namespace headrace::tools
