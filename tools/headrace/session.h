// Opens artifacts and models for the verbs that run them.
#pragma once

#include "tools/headrace/options.h"
#include "load/run.h"

namespace headrace::tools {

// Throws UserError if the path names a model where an artifact is expected.
void refuse_model(const std::string& path);

// Opens an artifact. Throws refusals as errors (Expected::value_or_throw).
std::shared_ptr<const load::Artifact> open_artifact(const std::string& path);

// Returns whether a path names an artifact (model.so, model.so.1, or another ELF file), not a model.
bool is_artifact(const std::string& path);
// Returns whether a path names an ONNX model. Throws as driver::model_format.
bool is_onnx(const std::string& path);

// Gives each input of an ONNX model that has open dimensions the shape of its file in options such as --input, unless
// it has a shape or a constant; images and files of elements alone do not say a shape.
void add_shapes_of_files(const std::string& path, const std::vector<std::string>& inputs, driver::LoadOptions& load);

// Adds the files of an opened artifact: `path` and its side file of weights, if it has one.
void add_artifact(FileUses& uses, const std::string& path, const artifact::Manifest& manifest);

// Opens an artifact (.so), or compiles a model into memory, whose open dimensions have the sizes of the files in
// `inputs` (add_shapes_of_files). `limits` receives the index_limits of a compiled model.
// `uses` receives the files that the artifact or the model consists of, and is checked before the compile.
std::shared_ptr<const load::Artifact> open_or_compile(const ModelOptions& model, const Common& common,
                                                      const std::vector<std::string>& inputs,
                                                      std::vector<int64_t>& limits, FileUses& uses);

}  // namespace headrace::tools
