#include "plan/program_text.h"

#include <map>

#include "ops/tensor/memory.h"
#include "plan/arena.h"
#include "relay/infer/infer_type.h"

namespace headrace::plan {

using relay::Function;
using relay::Var;

namespace {

class Writer {
 public:
  explicit Writer(const Program& program)
      : program_(program),
        lifetimes_(lifetimes_of(program)),
        bases_(program.bases.size()),
        views_(program.views.size()) {}

  IRModule write() {
    Array<Var> params;
    for (const auto* ports : {&program_.inputs, &program_.outputs}) {
      for (const size_t port : *ports) params.push_back(make_parameter(port));
    }
    make_arenas();
    for (size_t i = 0; i < program_.steps.size(); ++i) write_step(i);
    Array<Expr> extents;
    Array<Type> types;
    for (const BoundedOutput& bounded : program_.bounded_outputs) {
      extents.push_back(view(bounded.extent));
      types.push_back(program_.views[bounded.extent].type);
    }
    IRModule module = make_module(
        relay::make_function(params, lets(relay::make_tuple(extents)), make_tuple_type(types), {}, attributes()));
    for (const auto& [name, function] : program_.functions) module->add_function(name, function);
    return relay::infer_type(module);
  }

 private:
  Map<std::string, Value> attributes() const {
    Map<std::string, Value> attrs{{kNumOutputs, Value(static_cast<int64_t>(program_.outputs.size()))}};
    Array<int64_t> numbers;
    for (size_t i = 0; i < program_.bounded_outputs.size(); ++i) {
      const BoundedOutput& bounded = program_.bounded_outputs[i];
      for (const size_t number : {bounded.output, bounded.axis, i}) numbers.push_back(static_cast<int64_t>(number));
    }
    if (!numbers.empty()) attrs.set(kOutputExtents, Value(numbers));
    return attrs;
  }

  Var make_parameter(size_t port) {
    const size_t index = program_.views[port].base;
    const Base& base = program_.bases[index];
    const Var param = relay::make_var(base.name, base.type);
    bases_[index] = param;
    return param;
  }

  // Makes one storage for all that have an offset in the arena of their location.
  void make_arenas() {
    std::map<std::string, int64_t> sizes;
    for (const Base& base : program_.bases) {
      if (!base.offset) continue;
      int64_t& size = sizes[artifact::to_string(base.location)];
      size = std::max(size, *base.offset + Arena::lines(base.nbytes));
    }
    for (const auto& [location, size] : sizes) arenas_[location] = bind("arena", ops::alloc_storage(size, location));
  }

  void write_step(size_t index) {
    const Step& step = program_.steps[index];
    Array<Expr> inputs, outputs;
    for (const size_t input : step.inputs) inputs.push_back(view(input));
    for (const size_t output : step.outputs) outputs.push_back(view(output));
    const bool is_copy = !step.function;
    bind("_", is_copy ? ops::memory_copy(inputs[0], outputs[0], step.span)
                      : ops::call_dps(program_.functions[*step.function].first, inputs, outputs, step.span));
    for (const auto* views : {&step.inputs, &step.outputs}) {
      for (const size_t used : *views) kill_after(program_.views[used].base, index);
    }
  }

  void kill_after(size_t index, size_t step) {
    const Base& base = program_.bases[index];
    if (base.kind != Base::Kind::storage || base.offset || lifetimes_[index].last != step || !bases_[index]) return;
    bind("_", ops::memory_kill(bases_[index]));
    bases_[index] = {};
  }

  // Returns what names the base, and how far into that the base begins. Storages are made at their first use.
  std::pair<Expr, int64_t> base(size_t index) {
    const Base& found = program_.bases[index];
    if (found.offset) return {arenas_.at(artifact::to_string(found.location)), *found.offset};
    Expr& made = bases_[index];
    if (!made && found.kind == Base::Kind::constant) made = found.constant;
    if (!made)
      made = bind(fmt::format("s{}", num_storages_++),
                  ops::alloc_storage(found.nbytes, artifact::to_string(found.location)));
    return {made, 0};
  }

  // Returns the view as something that a call takes; it is bound at its first use.
  Expr view(size_t index) {
    Expr& made = views_[index];
    if (made) return made;
    const View& wanted = program_.views[index];
    const auto& [expr, offset] = base(wanted.base);
    if (is_whole(program_.bases[wanted.base], wanted)) return made = expr;
    return made = bind("t", ops::memory_view(expr, offset + wanted.byte_offset, wanted.shape, wanted.type->dtype,
                                             wanted.strides));
  }

  // Returns whether the view is the base itself, which is a tensor of that type.
  static bool is_whole(const Base& base, const View& view) {
    return base.type && view.byte_offset == 0 && view.strides.empty() && base.type->dtype == view.type->dtype &&
           as_shape(base.type->shape) == std::optional(view.shape);
  }

  Var bind(std::string name, Expr value) {
    bindings_.emplace_back(relay::make_var(std::move(name)), std::move(value));
    return bindings_.back().first;
  }

  Expr lets(Expr body) const {
    for (size_t i = bindings_.size(); i-- > 0;) body = relay::make_let(bindings_[i].first, bindings_[i].second, body);
    return body;
  }

  const Program& program_;
  std::vector<Lifetime> lifetimes_;
  std::vector<Expr> bases_;  // null: not made yet, or killed
  std::vector<Expr> views_;
  std::map<std::string, Var> arenas_;  // by location
  std::vector<std::pair<Var, Expr>> bindings_;
  size_t num_storages_ = 0;
};

}  // namespace

IRModule to_module(const Program& program) { return Writer(program).write(); }

}  // namespace headrace::plan
