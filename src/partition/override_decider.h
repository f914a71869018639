// OverrideDecider: what another decider says, but for some ops.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "partition/break_up.h"
#include "partition/decider.h"
#include "partition/place_override.h"

namespace headrace::partition {

// Each op goes where the first override says whose pattern matches it; all others as `base` says. Where overrides do
// not have the ops of a piece that a pattern matched go to the pattern's own backend or to native code together, the
// piece is broken up: its other ops go, each alone, to the backend of the piece, else to the first of the list that
// takes them. decide() throws UserError for an override that decides on no op, one of a backend that is not in the
// list, and one of an op that its backend does not take.
class OverrideDecider : public Decider {
 public:
  // `module` is that which `base` decides on.
  OverrideDecider(std::unique_ptr<Decider> base, std::vector<PlaceOverride> overrides, Backends backends,
                  const IRModule& module);
  const Backends& backends() const override { return backends_; }
  // Returns the module that decide() takes: the given one, with some pieces broken up.
  const IRModule& module() const { return broken_.module; }
  Labels decide(const IRModule& module) override;
  Verdict why(const PlacedCall& call, const std::string& backend) const override;
  Verdict why_in_plan(const relay::CallNode& call, const std::string& backend) const override;
  std::vector<LabelSeconds> costs_of(const PlacedCall& call) const override {
    return base_->costs_of({call.now, before(call.own)});
  }

 private:
  const PlaceOverride* match(const relay::CallNode& op) const;
  const PlaceOverride* find(const relay::CallNode& call) const;
  bool stays_whole(const relay::CallNode& piece, const PlaceOverride& override) const;
  void find_broken();
  void keep_calls_before(const std::map<const Object*, std::vector<std::string>>& freed);
  const relay::CallNode& before(const relay::CallNode& call) const;
  void check(const PlaceOverride& override, const relay::CallNode& call) const;
  [[noreturn]] void throw_unknown_backend(const PlaceOverride& override) const;
  [[noreturn]] void throw_unused(const PlaceOverride& override, const IRModule& module) const;
  Labels base_labels();
  std::string backend_alone(const relay::CallNode& op, const std::string& preferred) const;
  Verdict why_alone(const PlacedCall& call, const std::string& backend) const;

  std::unique_ptr<Decider> base_;
  std::vector<PlaceOverride> overrides_;
  Backends backends_;
  IRModule module_;  // that `base_` decides on
  BrokenUp broken_;
  // Calls of `module_`, and those inside of pieces that are broken up, by what became of them.
  std::unordered_map<const Object*, const relay::CallNode*> before_;
  std::unordered_map<const Object*, std::string>
      freed_;  // ops of broken pieces that no override has: why they are alone
};

}  // namespace headrace::partition
