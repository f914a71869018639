#include "partition/override_decision.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>

#include "ir/near_names.h"
#include "partition/place.h"

namespace headrace::partition {

using relay::CallNode;

OverrideDecision::OverrideDecision(std::shared_ptr<const Decision> base, std::vector<PlaceOverride> overrides)
    : Decision(base->module(), base->backends()), base_(std::move(base)), overrides_(std::move(overrides)) {
  find_broken();
  module_ = broken_.module;
  refusals_ = base_->refusals().of_split(base_->module(), module_);
  labels_ = base_labels();
  override_labels();
  cost_ = base_->cost_of(module_, labels_);
}

// Returns the override whose pattern matches the name of this call.
const PlaceOverride* OverrideDecision::match(const CallNode& op) const {
  const std::string place = place_of(op), name = short_place_of(op);
  for (const PlaceOverride& one : overrides_) {
    const auto matches = [&](const std::string& text) {  // a name with brackets is one as it stands, too
      return one.pattern == text || fnmatch(one.pattern.c_str(), text.c_str(), 0) == 0;
    };
    if (matches(place) || matches(name)) return &one;
  }
  return nullptr;
}

// Returns the override that decides on a call; that of all its ops for a piece.
const PlaceOverride* OverrideDecision::find(const CallNode& call) const {
  const std::vector<const CallNode*> parts = parts_of(call);
  return match(parts.empty() ? call : *parts.front());
}

bool OverrideDecision::stays_whole(const CallNode& piece, const PlaceOverride& override) const {
  if (override.backend == kNative) return true;
  const Backend* backend = find_in(backends_, override.backend);
  return backend == nullptr || refusal_of(*backend, piece).empty();
}

void OverrideDecision::find_broken() {
  std::set<const Object*> pieces;
  std::map<const Object*, std::vector<std::string>> freed;  // by piece: why each op is alone that no override has
  for_each_decided_call(base_->module(), [&](const CallNode& call) {
    const std::vector<const CallNode*> parts = parts_of(call);
    if (parts.empty()) return;
    const PlaceOverride* first = match(*parts.front());
    const bool is_one =
        std::all_of(parts.begin(), parts.end(), [&](const CallNode* op) { return match(*op) == first; });
    if (is_one && (first == nullptr || stays_whole(call, *first))) return;
    pieces.insert(&call);
    const auto decides = [&](const CallNode* op) { return match(*op) != nullptr; };
    const PlaceOverride& breaking = *match(**std::find_if(parts.begin(), parts.end(), decides));
    for (const CallNode* op : parts) {
      freed[&call].push_back(match(*op) != nullptr
                                 ? ""
                                 : fmt::format("--place '{}={}' breaks up the pattern {} that it was in",
                                               breaking.pattern, breaking.backend, kind_of(call)));
    }
  });
  broken_ = break_up(base_->module(), pieces);
  keep_calls_before(freed);
}

void OverrideDecision::keep_calls_before(const std::map<const Object*, std::vector<std::string>>& freed) {
  for (const auto& [call, now] : broken_.now) before_.emplace(now, static_cast<const CallNode*>(call));
  for (const auto& [piece, ops] : broken_.parts) {
    const std::vector<const CallNode*> inside = parts_of(*static_cast<const CallNode*>(piece));
    for (size_t i = 0; i < ops.size(); ++i) {
      before_.emplace(ops[i], inside.at(i));
      if (const std::string& why = freed.at(piece).at(i); !why.empty()) freed_.emplace(ops[i], why);
    }
  }
}

// Returns the call of the base's module that became this one, or the call inside of one of its pieces.
const CallNode& OverrideDecision::before(const CallNode& call) const {
  const auto found = before_.find(&call);
  return found == before_.end() ? call : *found->second;
}

void OverrideDecision::check(const PlaceOverride& override, const CallNode& call) const {
  if (override.backend == kNative) return;
  const Backend* backend = find_in(backends_, override.backend);
  if (const std::string refusal = refusal_of(*backend, call); !refusal.empty())
    throw_user_error("--place '{}={}': {} does not take the {} at {}: {}", override.pattern, override.backend,
                     override.backend, kind_of(call), place_of(call), refusal);
}

// Returns the first backend that takes an op by itself, tried after `preferred`; empty for none.
std::string OverrideDecision::backend_alone(const CallNode& op, const std::string& preferred) const {
  const Backend* first = find_in(backends_, preferred);
  if (first != nullptr && refusal_of(*first, op).empty()) return preferred;
  for (const auto& backend : backends_) {
    if (refusal_of(*backend, op).empty()) return std::string(backend->name());
  }
  return "";
}

// Returns what the base says of the calls of the broken module.
Labels OverrideDecision::base_labels() const {
  Labels labels;
  for (const auto& [call, backend] : base_->labels()) {
    if (const auto now = broken_.now.find(call); now != broken_.now.end()) labels.emplace(now->second, backend);
    const auto parts = broken_.parts.find(call);
    if (parts == broken_.parts.end()) continue;
    for (const CallNode* op : parts->second) {
      if (std::string alone = backend_alone(*op, backend); !alone.empty()) labels.emplace(op, std::move(alone));
    }
  }
  return labels;
}

void OverrideDecision::throw_unknown_backend(const PlaceOverride& override) const {
  std::vector<std::string> names{kNative};
  for (const auto& backend : backends_) names.emplace_back(backend->name());
  const std::vector<std::string> near = near_names(override.backend, names, '-');
  throw_user_error("--place '{}={}': the backend '{}' is not among those of this compile; {}", override.pattern,
                   override.backend, override.backend,
                   near.empty() ? "add it by --backends" : fmt::format("did you mean {}?", fmt::join(near, " or ")));
}

void OverrideDecision::throw_unused(const PlaceOverride& override) const {
  bool is_kind = false;
  for_each_decided_call(module_, [&](const CallNode& call) {
    is_kind |= fnmatch(override.pattern.c_str(), kind_of(call).c_str(), 0) == 0;
  });
  const char* why = is_kind                  ? "it is compared with names of ops, and not with their kinds"
                    : overrides_.size() == 1 ? "no name matches"
                                             : "no name matches, or an earlier --place matches the same ops";
  throw_user_error("--place '{}={}': it decides on no op; {} (headrace explain lists the names)", override.pattern,
                   override.backend, why);
}

void OverrideDecision::override_labels() {
  for (const PlaceOverride& one : overrides_) {
    if (one.backend != kNative && find_in(backends_, one.backend) == nullptr) throw_unknown_backend(one);
  }
  std::set<const PlaceOverride*> used;
  for_each_decided_call(module_, [&](const CallNode& call) {
    const PlaceOverride* override = find(call);
    if (override == nullptr) return;
    used.insert(override);
    check(*override, call);
    if (override->backend == kNative)
      labels_.erase(&call);
    else
      labels_[&call] = find_in(backends_, override->backend)->name();
  });
  for (const PlaceOverride& one : overrides_) {
    if (!used.contains(&one)) throw_unused(one);
  }
}

// Returns why an op that a pattern held is alone; no reason for other ops.
Verdict OverrideDecision::why_alone(const PlacedCall& call, const std::string& backend) const {
  const auto freed = freed_.find(&call.own);
  if (freed == freed_.end()) return {};
  Verdict why{.reason = HR_REASON_PLACE_BY_OVERRIDE, .message = freed->second};
  if (backend == kNative) why.message += "; " + why_native(call).message;
  return why;
}

Verdict OverrideDecision::why(const PlacedCall& call, const std::string& backend) const {
  const PlaceOverride* override = find(call.now);
  const Backend* wanted = override == nullptr ? nullptr : find_in(backends_, override->backend);
  const std::string own(wanted == nullptr ? (override == nullptr ? "" : override->backend) : wanted->name());
  if (override != nullptr && own == backend)
    return {.reason = HR_REASON_PLACE_BY_OVERRIDE,
            .message = fmt::format("--place '{}={}' says so", override->pattern, override->backend)};
  Verdict alone = why_alone(call, backend);
  return alone.ok() ? base_->why({call.now, before(call.own)}, backend) : alone;
}

Verdict OverrideDecision::why_in_plan(const CallNode& call, const std::string& backend) const {
  if (find(call) != nullptr || freed_.contains(&call)) return why(call, backend);
  const auto before = before_.find(&call);
  return before == before_.end() ? why(call, backend) : base_->why_in_plan(*before->second, backend);
}

}  // namespace headrace::partition
