#include "plan/plan_memory.h"

#include <algorithm>
#include <map>

#include "plan/arena.h"

namespace headrace::plan {

namespace {

class Planner {
 public:
  explicit Planner(Program& program) : program_(program), lifetimes_(lifetimes_of(program)) {}

  void plan() {
    for (Base& base : program_.bases) base.offset.reset();
    for (size_t i = 0; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      for (const auto* views : {&step.inputs, &step.outputs}) {
        for (const size_t view : *views) take(program_.views[view].base);
      }
      for (const auto* views : {&step.inputs, &step.outputs}) {
        for (const size_t view : *views) give_back(program_.views[view].base, i);
      }
    }
  }

 private:
  Arena& arena_of(const Base& base) { return arenas_[artifact::to_string(base.location)]; }

  void take(size_t index) {
    Base& base = program_.bases[index];
    if (base.kind != Base::Kind::storage || base.offset) return;
    base.offset = arena_of(base).take(base.nbytes);
  }

  void give_back(size_t index, size_t step) {
    const Base& base = program_.bases[index];
    Lifetime& lifetime = lifetimes_[index];
    if (base.kind != Base::Kind::storage || lifetime.last != step) return;
    arena_of(base).give_back(*base.offset);
    lifetime.last = SIZE_MAX;  // a step may have several views of it
  }

  Program& program_;
  std::vector<Lifetime> lifetimes_;
  std::map<std::string, Arena> arenas_;  // by location
};

}  // namespace

void plan_memory(Program& program) { Planner(program).plan(); }

int64_t arena_bytes(const Program& program, const artifact::Location& location) {
  int64_t end = 0;
  for (const Base& base : program.bases) {
    if (base.offset && base.location == location) end = std::max(end, *base.offset + Arena::lines(base.nbytes));
  }
  return end;
}

}  // namespace headrace::plan
