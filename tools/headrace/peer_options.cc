#include "tools/headrace/peer_options.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "tools/headrace/interruption.h"
#include "tools/headrace/session.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

void PeerOptions::add_to(CLI::App& verb, const std::string& what) {
  takes_word(verb.add_option("--against", name, what), "peer",
             {"onnxruntime", "openvino", "openvino-default", "ncnn", "torch-compile"});
  verb.add_option("--against-model", model,
                  "The ONNX file that the peer reads, with the same inputs and outputs (default: the model)")
      ->type_name("FILE");
  takes_word(verb.add_option("--against-level", level,
                             "How far onnxruntime optimises the model (default: all); none: it runs each operator as "
                             "the model has it, also quantized ones, which it fuses otherwise"),
             "level of optimisation", {"none", "basic", "extended", "all"});
}

void PeerOptions::require(const std::string& our_model) const {
  if (!is_given()) {
    if (!model.empty()) throw UsageError("--against-model is the peer's model: name the peer with --against");
    if (!level.empty()) throw UsageError("--against-level is the peer's level: name the peer with --against");
    return;
  }
  if (!level.empty() && !has_levels())
    throw UsageError(fmt::format("--against-level: {} has no levels of optimisation; leave it out", name));
  if (model.empty() && is_artifact(our_model))
    throw_user_error(
        "'{}' is an artifact, which {} cannot read: give the model, with the same --shape and --bind, or the peer's "
        "model with --against-model",
        our_model, name);
  if (!model.empty()) static_cast<void>(MappedFile::open(model, "model of --against-model"));  // throws without one
  watch_for_interruptions();
  Peer::require(name, model.empty() ? our_model : model);
}

std::unique_ptr<Peer> PeerOptions::start(const std::string& our_model, const std::map<std::string, NDArray>& inputs,
                                         int threads) const {
  return std::make_unique<Peer>(name, model.empty() ? our_model : model, inputs, threads, level);
}

}  // namespace headrace::tools
