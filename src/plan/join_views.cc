#include "plan/join_views.h"

#include <algorithm>

#include "ops/call_fusion.h"
#include "ops/tensor/join.h"
#include "relay/function_attrs.h"
#include "relay/leaves.h"
#include "relay/visit.h"
#include "tensor/strides.h"

namespace headrace::plan {

namespace {

// Returns the axis of a function that does nothing but concatenate its parameters in their order; nothing for others.
std::optional<size_t> concatenated_axis(const relay::FunctionNode& function) {
  const auto* call = function.body.as<relay::CallNode>();
  if (call == nullptr) return std::nullopt;
  const std::vector<Expr> items = relay::items_of_args(*call);
  if (items.size() != function.params.size()) return std::nullopt;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i] != function.params[i]) return std::nullopt;
  }
  return ops::concatenated_axis(*call);
}

// Returns whether the kernel of a function may write its result with gaps: it has one result, made by compute rules.
// Ops with a kernel rule are opaque.
bool may_write_gaps(const GlobalVar& name, const relay::FunctionNode& function) {
  if (import_of(name, function) || !function.body->checked_type().is<TensorTypeNode>()) return false;
  bool is_fusible = true;
  relay::post_order(function.body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call != nullptr && ops::fusion_kind_of(*call) == ops::FusionKind::opaque) is_fusible = false;
  });
  return is_fusible;
}

// The fewest neighbouring bytes of a part with gaps. Two dense layers of 8 columns (32 bytes) take 58 us together, and
// with a copy 62; two sums of one column 38, and with a copy 37.
constexpr int64_t kShortestRun = 32;

class Joiner {
 public:
  Joiner(Program& program, GroupTable& groups) : program_(program), groups_(groups), uses_(program.bases.size()) {
    for (const auto& [name, function] : program.functions) axes_.push_back(concatenated_axis(*function));
  }

  void join() {
    for (size_t i = 0; i < program_.steps.size(); ++i) count(i);
    std::vector<bool> is_joined(program_.steps.size());
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      is_joined[i] = is_joinable(program_.steps[i]);
      if (is_joined[i]) join_step(program_.steps[i]);
    }
    size_t at = 0;
    std::erase_if(program_.steps, [&](const Step&) { return is_joined[at++]; });
    if (homes_.empty()) return;
    for (View& view : program_.views) settle(view);
    drop_unused_functions(program_);
  }

 private:
  // Where a base lies in another one, after a join.
  struct Home {
    size_t base = 0;
    int64_t offset = 0;
  };

  // How steps use a base.
  struct Use {
    int writers = 0, readers = 0, joins = 0;  // steps that write it; that read it; concatenations among these
    size_t writer = 0;                        // the last step that writes it
  };

  bool is_join(const Step& step) const { return step.function && axes_[*step.function]; }

  void count(size_t index) {
    const Step& step = program_.steps[index];
    for (const size_t output : step.outputs) {
      Use& use = uses_[program_.views[output].base];
      ++use.writers;
      use.writer = index;
    }
    for (const size_t input : step.inputs) {
      Use& use = uses_[program_.views[input].base];
      ++use.readers;
      if (is_join(step)) ++use.joins;
    }
  }

  bool is_whole(const View& view) const {
    return view.byte_offset == 0 && view.strides.empty() && span_bytes(view) == program_.bases[view.base].nbytes;
  }

  // Returns whether the parts of a concatenation lie one after another in its result.
  bool is_gapless(const Step& step) const {
    const Shape& shape = program_.views[step.outputs[0]].shape;
    const auto outer = shape.begin() + static_cast<std::ptrdiff_t>(*axes_[*step.function]);
    return std::all_of(shape.begin(), outer, [](int64_t extent) { return extent == 1; });
  }

  bool is_joinable(const Step& step) const {
    if (!is_join(step)) return false;
    const View& result = program_.views[step.outputs[0]];
    if (!is_whole(result)) return false;
    const bool has_gaps = !is_gapless(step);
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](size_t input) {
      const View& part = program_.views[input];
      const Base& base = program_.bases[part.base];
      const Use& use = uses_[part.base];
      return base.kind == Base::Kind::storage && base.location == program_.bases[result.base].location &&
             use.writers == 1 && use.joins == 1 && is_whole(part) && part.base != result.base &&
             (!has_gaps || (part_bytes(part, *axes_[*step.function]) >= kShortestRun && may_have_gaps(input, use)));
    });
  }

  // Returns whether a part may be written with gaps: the concatenation alone reads it, as the view that its step
  // writes.
  bool may_have_gaps(size_t part, const Use& use) const {
    const Step& writer = program_.steps[use.writer];
    if (use.readers != 1 || !writer.function || is_join(writer) || writer.outputs != std::vector{part}) return false;
    const auto& [name, function] = program_.functions[*writer.function];
    return may_write_gaps(name, *function);
  }

  void join_step(const Step& step) {
    const View& result = program_.views[step.outputs[0]];
    const Shape strides = is_gapless(step) ? Shape() : dense_strides(result.shape);
    int64_t offset = 0;
    for (const size_t input : step.inputs) {
      View& part = program_.views[input];
      homes_[part.base] = {result.base, offset};
      offset += part_bytes(part, *axes_[*step.function]);
      if (strides.empty()) continue;
      part.strides = strides;
      Step& writer = program_.steps[uses_[part.base].writer];
      writer.function = strided(*writer.function, strides);
    }
  }

  // Returns the bytes from the begin of a part to that of the next: those of its axis and the dimensions inside.
  static int64_t part_bytes(const View& part, size_t axis) {
    int64_t bytes = static_cast<int64_t>(part.type->dtype.bytes());
    for (size_t i = axis; i < part.shape.size(); ++i) bytes *= part.shape[i];
    return bytes;
  }

  // Returns the function that computes the same and writes its result with strides.
  size_t strided(size_t index, const Shape& strides) {
    const relay::Function function = copy_with(*program_.functions[index].second, [&](relay::FunctionNode& copy) {
      copy.attrs.set(relay::kResultStrides, Value(strides));
    });
    const GlobalVar name = groups_.add(function);
    const auto [known, is_new] = strided_.emplace(name.object(), program_.functions.size());
    if (is_new) {
      program_.functions.emplace_back(name, function);
      axes_.emplace_back();
    }
    return known->second;
  }

  // Moves a view to where its base went; a result may itself have become a part of another one.
  void settle(View& view) const {
    for (auto home = homes_.find(view.base); home != homes_.end(); home = homes_.find(view.base)) {
      view.base = home->second.base;
      view.byte_offset += home->second.offset;
    }
  }

  Program& program_;
  GroupTable& groups_;
  std::vector<std::optional<size_t>> axes_;  // axis per function
  std::vector<Use> uses_;                    // by base
  std::unordered_map<size_t, Home> homes_;
  std::unordered_map<const Object*, size_t> strided_;  // functions that were added, by their global variables
};

}  // namespace

void join_views(Program& program, GroupTable& groups) { Joiner(program, groups).join(); }

}  // namespace headrace::plan
