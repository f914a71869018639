// The options of the verbs that run another runtime beside ours.
#pragma once

#include <CLI/App.hpp>

#include <memory>
#include <string>

#include "tools/headrace/peer.h"

namespace headrace::tools {

struct PeerOptions {
  std::string name;   // empty: no peer
  std::string model;  // its file; empty: ours
  std::string level;  // how far it optimises the model; empty: as it does by default

  // `what` is the help of --against.
  void add_to(CLI::App& verb, const std::string& what);
  bool is_given() const { return !name.empty(); }
  // Returns whether the peer has levels of optimisation to choose from.
  bool has_levels() const { return name == "onnxruntime"; }
  // Call before the work and before threads are started. UserError when the peer cannot read its model or our file is
  // not a model and --against-model is missing; MissingError when the peer is not installed; UsageError for
  // --against-model or --against-level alone, and for the level of a peer that has none. From here on an interrupted
  // program leaves nothing of the peer behind.
  void require(const std::string& our_model) const;
  // UserError and MissingError as Peer's constructor.
  std::unique_ptr<Peer> start(const std::string& our_model, const std::map<std::string, NDArray>& inputs,
                              int threads) const;
};

}  // namespace headrace::tools
