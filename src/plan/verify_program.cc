#include "plan/verify_program.h"

#include <algorithm>
#include <map>

#include "plan/arena.h"

namespace headrace::plan {

namespace {

// Ranges of bytes that were written: begin -> end; no two touch.
class Written {
 public:
  void add(int64_t begin, int64_t end) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin() && std::prev(at)->second >= begin) --at;
    while (at != ranges_.end() && at->first <= end) {
      begin = std::min(begin, at->first);
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_.emplace(begin, end);
  }

  bool covers(int64_t begin, int64_t end) const {
    if (begin >= end) return true;
    const auto after = ranges_.upper_bound(begin);
    return after != ranges_.begin() && std::prev(after)->second >= end;
  }

 private:
  std::map<int64_t, int64_t> ranges_;
};

class Verifier {
 public:
  explicit Verifier(const Program& program) : program_(program), written_(program.bases.size()) {}

  std::vector<std::string> verify() {
    for (size_t i = 0; i < program_.views.size(); ++i) check_view(i);
    for (size_t i = 0; i < program_.steps.size(); ++i) check_step(i);
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const View& output = program_.views[program_.outputs[i]];
      if (!written_[output.base].covers(0, span_bytes(output))) breach("output {} is not written whole", i);
    }
    check_arenas();
    return std::move(breaches_);
  }

 private:
  template <typename... Args>
  void breach(fmt::format_string<Args...> format, Args&&... args) {
    breaches_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  bool is_memory(const View& view) const {
    const Base::Kind kind = program_.bases[view.base].kind;
    return kind == Base::Kind::storage || kind == Base::Kind::output;
  }

  void check_view(size_t index) {
    const View& view = program_.views[index];
    const Base& base = program_.bases[view.base];
    const int64_t nbytes = span_bytes(view);
    if (view.byte_offset < 0 || view.byte_offset > base.nbytes || nbytes > base.nbytes - view.byte_offset)
      breach("view {} has {} bytes at {}, outside the {} of its base", index, nbytes, view.byte_offset, base.nbytes);
    if (view.byte_offset % static_cast<int64_t>(view.type->dtype.bytes()) != 0)
      breach("view {} begins at byte {}, no multiple of its element's size", index, view.byte_offset);
  }

  void check_step(size_t index) {
    const Step& step = program_.steps[index];
    check_types(index, step);
    for (const size_t input : step.inputs) check_read(index, program_.views[input]);
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      const View& output = program_.views[step.outputs[i]];
      if (!is_memory(output)) breach("step {} writes an input or a constant", index);
      for (const size_t input : step.inputs) check_apart(index, output, program_.views[input]);
      for (size_t k = 0; k < i; ++k) check_apart(index, output, program_.views[step.outputs[k]]);
    }
    for (const size_t output : step.outputs) add_written(program_.views[output]);
  }

  // Notes the bytes that a step writes: each run of neighbouring elements.
  void add_written(const View& view) {
    const auto item = static_cast<int64_t>(view.type->dtype.bytes());
    int64_t run = 1, count = 1;
    size_t outer = view.shape.size();
    if (view.strides.empty()) {
      run = num_elements(view.shape);
      outer = 0;
    }
    for (; outer > 0 && view.strides[outer - 1] == run; --outer) run *= view.shape[outer - 1];
    for (size_t i = 0; i < outer; ++i) count *= view.shape[i];
    for (int64_t k = 0; k < count; ++k) {
      int64_t begin = 0;
      for (size_t i = outer, rest = static_cast<size_t>(k); i-- > 0; rest /= static_cast<size_t>(view.shape[i]))
        begin += static_cast<int64_t>(rest % static_cast<size_t>(view.shape[i])) * view.strides[i];
      written_[view.base].add(view.byte_offset + begin * item, view.byte_offset + (begin + run) * item);
    }
  }

  void check_types(size_t index, const Step& step) {
    if (!step.function) {
      const bool is_pair = step.inputs.size() == 1 && step.outputs.size() == 1;
      if (!is_pair || !is_same(program_.views[step.inputs[0]], program_.views[step.outputs[0]].type) ||
          !program_.views[step.inputs[0]].strides.empty() || !program_.views[step.outputs[0]].strides.empty())
        breach("step {} copies between views of different types", index);
      return;
    }
    const relay::FunctionNode& function = *program_.functions[*step.function].second;
    std::vector<Type> params;
    for (const relay::Var& param : function.params) params.push_back(param->checked_type());
    check_views(index, "reads", step.inputs, params);
    check_views(index, "writes", step.outputs, leaves_of(function.body->checked_type()));
  }

  static bool is_same(const View& view, const Type& type) {
    const auto* tensor = type.as<TensorTypeNode>();
    return tensor != nullptr && tensor->dtype == view.type->dtype &&
           as_shape(tensor->shape) == std::optional(view.shape);
  }

  void check_views(size_t index, std::string_view verb, const std::vector<size_t>& views,
                   const std::vector<Type>& types) {
    if (views.size() != types.size()) {
      breach("step {} {} {} views, its function has {}", index, verb, views.size(), types.size());
      return;
    }
    for (size_t i = 0; i < views.size(); ++i) {
      if (!is_same(program_.views[views[i]], types[i]))
        breach("step {} {} a {} as {}, which is {}", index, verb, to_string(Type(program_.views[views[i]].type)), i,
               to_string(types[i]));
    }
  }

  void check_read(size_t index, const View& view) {
    if (is_memory(view) && !written_[view.base].covers(view.byte_offset, view.byte_offset + span_bytes(view)))
      breach("step {} reads bytes that no earlier step wrote", index);
  }

  void check_apart(size_t index, const View& a, const View& b) {
    if (a.base == b.base && a.byte_offset < b.byte_offset + span_bytes(b) &&
        b.byte_offset < a.byte_offset + span_bytes(a))
      breach("step {} writes memory that it reads or writes as another argument", index);
  }

  // Goes through the steps with the ranges of each arena that are in use.
  void check_arenas() {
    const std::vector<Lifetime> lifetimes = lifetimes_of(program_);
    std::multimap<size_t, size_t> begins, ends;  // step -> base
    for (size_t i = 0; i < program_.bases.size(); ++i) {
      if (!program_.bases[i].offset || lifetimes[i].first == SIZE_MAX) continue;
      begins.emplace(lifetimes[i].first, i);
      ends.emplace(lifetimes[i].last, i);
    }
    std::map<std::string, std::map<int64_t, int64_t>> in_use;  // location -> begin -> end
    auto end = ends.begin();
    for (const auto& [step, index] : begins) {
      for (; end != ends.end() && end->first < step; ++end) {
        const Base& base = program_.bases[end->second];
        in_use[artifact::to_string(base.location)].erase(*base.offset);
      }
      const Base& base = program_.bases[index];
      const int64_t first = *base.offset, last = first + Arena::lines(base.nbytes);
      auto& ranges = in_use[artifact::to_string(base.location)];
      const auto after = ranges.lower_bound(first);
      if ((after != ranges.end() && after->first < last) ||
          (after != ranges.begin() && std::prev(after)->second > first))
        breach("the storage at byte {} is in use from step {} on, where another one lies", first, step);
      ranges.emplace(first, last);
    }
  }

  const Program& program_;
  std::vector<Written> written_;  // one per base
  std::vector<std::string> breaches_;
};

}  // namespace

std::vector<std::string> find_breaches(const Program& program) { return Verifier(program).verify(); }

}  // namespace headrace::plan
