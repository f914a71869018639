#include "plan/join_views.h"

#include <algorithm>

#include "ops/tensor/join.h"
#include "relay/leaves.h"

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

class Joiner {
 public:
  explicit Joiner(Program& program) : program_(program), writers_(program.bases.size()), joins_(program.bases.size()) {
    for (const auto& [name, function] : program.functions) axes_.push_back(concatenated_axis(*function));
  }

  void join() {
    for (const Step& step : program_.steps) count(step);
    std::vector<Step> kept;
    for (Step& step : program_.steps) {
      if (is_joinable(step)) {
        join_step(step);
      } else {
        kept.push_back(std::move(step));
      }
    }
    program_.steps = std::move(kept);
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

  bool is_join(const Step& step) const { return step.function && axes_[*step.function]; }

  void count(const Step& step) {
    for (const size_t output : step.outputs) ++writers_[program_.views[output].base];
    if (!is_join(step)) return;
    for (const size_t input : step.inputs) ++joins_[program_.views[input].base];
  }

  bool is_whole(const View& view) const {
    return view.byte_offset == 0 && view.strides.empty() && span_bytes(view) == program_.bases[view.base].nbytes;
  }

  bool is_joinable(const Step& step) const {
    if (!is_join(step)) return false;
    const View& result = program_.views[step.outputs[0]];
    const auto outer = result.shape.begin() + static_cast<std::ptrdiff_t>(*axes_[*step.function]);
    const DataType dtype = result.type->dtype;
    const bool is_bytes = dtype.bits() * dtype.lanes() % 8 == 0;
    if (!is_bytes || !is_whole(result) ||
        std::any_of(result.shape.begin(), outer, [](int64_t extent) { return extent != 1; }))
      return false;
    return std::all_of(step.inputs.begin(), step.inputs.end(), [&](size_t input) {
      const View& part = program_.views[input];
      const Base& base = program_.bases[part.base];
      return base.kind == Base::Kind::storage && base.location == program_.bases[result.base].location &&
             writers_[part.base] == 1 && joins_[part.base] == 1 && is_whole(part) && part.base != result.base;
    });
  }

  void join_step(const Step& step) {
    int64_t offset = 0;
    for (const size_t input : step.inputs) {
      const View& part = program_.views[input];
      homes_[part.base] = {program_.views[step.outputs[0]].base, offset};
      offset += span_bytes(part);
    }
  }

  // Moves a view to where its base went; a result may itself have become a part of another one.
  void settle(View& view) const {
    for (auto home = homes_.find(view.base); home != homes_.end(); home = homes_.find(view.base)) {
      view.base = home->second.base;
      view.byte_offset += home->second.offset;
    }
  }

  Program& program_;
  std::vector<std::optional<size_t>> axes_;  // axis per function
  std::vector<int> writers_, joins_;         // steps that write a base; concatenations that take it
  std::unordered_map<size_t, Home> homes_;
};

}  // namespace

void join_views(Program& program) { Joiner(program).join(); }

}  // namespace headrace::plan
