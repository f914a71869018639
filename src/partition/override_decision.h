// OverrideDecision: another decision, but for some ops.
#pragma once

#include <map>
#include <memory>
#include <set>

#include "partition/break_up.h"
#include "partition/decision.h"
#include "partition/place_override.h"

namespace headrace::partition {

// Each op goes where the first override says whose pattern matches it; all others as `base` says. Where overrides do
// not have the ops of a piece that a pattern matched go to the pattern's own backend or to native code together, the
// piece is broken up: its other ops go, each alone, to the backend of the piece, else to the first of the list that
// takes them. module() is that of `base`, with such pieces broken up.
class OverrideDecision : public Decision {
 public:
  // UserError for an override that decides on no op, one of a backend that is not in the list, and one of an op that
  // its backend does not take.
  OverrideDecision(std::shared_ptr<const Decision> base, std::vector<PlaceOverride> overrides);
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
  [[noreturn]] void throw_unused(const PlaceOverride& override) const;
  Labels base_labels() const;
  void override_labels();
  std::string backend_alone(const relay::CallNode& op, const std::string& preferred) const;
  Verdict why_alone(const PlacedCall& call, const std::string& backend) const;

  std::shared_ptr<const Decision> base_;
  std::vector<PlaceOverride> overrides_;
  BrokenUp broken_;
  // Calls of the base's module, and those inside of pieces that are broken up, by what became of them.
  std::unordered_map<const Object*, const relay::CallNode*> before_;
  std::unordered_map<const Object*, std::string>
      freed_;  // ops of broken pieces that no override has: why they are alone
};

}  // namespace headrace::partition
