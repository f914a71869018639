#include "kit/functional_motifs.h"

#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "relay/text/parse.h"

namespace headrace::kit {

namespace {

using relay::make_call;
using relay::make_clause;
using relay::make_pattern_constructor;
using relay::make_pattern_var;
using relay::make_pattern_wildcard;
using relay::Var;

constexpr std::string_view kPrelude = R"(#[version = "0.0.5"]
type Option[A] { Some(A), None, }
type List[A] { Cons(A, List[A]), Nil, }
def @map[A](%f: fn (A) -> A, %l: List[A]) -> List[A] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @last[A](%l: List[A], %else: A) -> A {
  match (%l) { Cons(%h, %t) => { @last(%t, %h) }, Nil => { %else } }
}
def @same[A](%x: A) -> A { %x }
def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }
)";

Expr bounded(const Expr& x) { return ops::unary("tanh", x); }

class MotifMaker {
 public:
  MotifMaker(const IRModule& prelude, const Expr& a, const Expr& condition, size_t serial)
      : prelude_(prelude), a_(a), type_(a->checked_type()), condition_(condition), serial_(serial) {}

  FunctionalMotif make(int64_t kind) {
    switch (kind) {
      case 0:
        return called_twice();
      case 1:
        return function_of_function();
      case 2:
        return option();
      case 3:
        return list();
      case 4:
        return loop();
      case 5:
        return reference();
      case 6:
        return counter();
      case 7:
        return module_values();
      default:
        return nested_pattern();
    }
  }
  static constexpr int64_t kKinds = 9;

 private:
  Var var(const char* name, Type type) const {
    return relay::make_var(fmt::format("{}{}", name, serial_), std::move(type));
  }
  Var param(const char* name) const { return var(name, type_); }
  Type function_type() const { return make_func_type(Array<Type>{type_}, type_); }
  Expr constructor(std::string_view name) const {
    for (const auto& [type_var, data] : prelude_->type_definitions()) {
      for (const Constructor& made : data->constructors) {
        if (made->name_hint == name) return made;
      }
    }
    throw InternalError(fmt::format("the prelude has no constructor {}", name));
  }
  relay::Pattern pattern(std::string_view name, Array<relay::Pattern> parts) const {
    return make_pattern_constructor(constructor(name).cast<ConstructorNode>(), std::move(parts));
  }
  Expr global(std::string_view name) const { return prelude_->find_global_var(name); }

  // %x -> tanh(%x + a)
  Expr adder(const char* name) const {
    const Var x = param(name);
    return relay::make_function({x}, bounded(ops::add(x, a_)), type_);
  }

  FunctionalMotif called_twice() {
    const Var f = var("f", function_type());
    return {{{f, adder("p")}}, ops::subtract(make_call(Expr(f), {ops::relu(a_)}), make_call(Expr(f), {a_}))};
  }

  FunctionalMotif function_of_function() {
    const Var q = param("q"), p = param("p");
    const Expr inner = relay::make_function({p}, bounded(ops::add(p, q)), type_);
    const Var maker = var("make", make_func_type(Array<Type>{type_}, function_type()));
    return {{{maker, relay::make_function({q}, inner, function_type())}},
            make_call(make_call(Expr(maker), {a_}), {ops::relu(a_)})};
  }

  FunctionalMotif option() {
    const Expr data =
        relay::make_if(condition_, make_call(constructor("Some"), {a_}), make_call(constructor("None"), {}));
    const Var x = param("x");
    return {{},
            relay::make_match(data,
                              {make_clause(pattern("Some", {make_pattern_var(x)}), bounded(x)),
                               make_clause(pattern("None", {}), ops::unary("negative", ops::relu(a_)))},
                              true)};
  }

  FunctionalMotif list() {
    const Expr end = make_call(constructor("Nil"), {});
    const Expr items = make_call(constructor("Cons"), {a_, make_call(constructor("Cons"), {bounded(a_), end})});
    return {{}, make_call(global("last"), {make_call(global("map"), {adder("p"), items}), a_})};
  }

  // Three rounds of tanh(acc + a).
  FunctionalMotif loop() {
    const Type int32 = make_scalar_type(DataType::int_(32));
    const auto number = [](int64_t value) {
      return relay::make_scalar(static_cast<double>(value), DataType::int_(32));
    };
    const Var f = var("loop", make_func_type(Array<Type>{int32, type_}, type_));
    const Var i = var("i", int32), acc = param("acc");
    const Expr again = make_call(Expr(f), {ops::add(i, number(1)), bounded(ops::add(acc, a_))});
    const Expr body = relay::make_if(ops::binary("less", i, number(3)), again, acc);
    return {{{f, relay::make_function({i, acc}, body, type_)}}, make_call(Expr(f), {number(0), a_})};
  }

  FunctionalMotif reference() {
    const Var r = var("r", make_ref_type(type_)), u = var("u", make_tuple_type({}));
    const Expr before = relay::make_ref_read(r);
    return {{{r, relay::make_ref_create(a_)},
             {var("old", type_), before},
             {u, relay::make_ref_write(r, bounded(ops::subtract(before, ops::relu(a_))))}},
            relay::make_ref_read(r)};
  }

  // A function that writes, called on both sides of one that reads.
  FunctionalMotif counter() {
    const Var r = var("r", make_ref_type(type_)), seen = var("seen", type_);
    const Type unit = make_tuple_type({});
    const Var bump = var("bump", make_func_type({}, unit));
    const Expr write = relay::make_ref_write(r, bounded(ops::add(relay::make_ref_read(r), a_)));
    return {{{r, relay::make_ref_create(a_)},
             {bump, relay::make_function({}, write, unit)},
             {var("u", unit), make_call(Expr(bump), {})},
             {seen, relay::make_ref_read(r)},
             {var("w", unit), make_call(Expr(bump), {})}},
            ops::subtract(relay::make_ref_read(r), seen)};
  }

  // A constructor and a function of the module as values.
  FunctionalMotif module_values() {
    const Expr same = make_call(global("apply"), {global("same"), a_});
    const Expr some = make_call(global("apply"), {constructor("Some"), same});
    const Var x = param("x");
    return {{}, relay::make_match(some, {make_clause(pattern("Some", {make_pattern_var(x)}), bounded(x))}, false)};
  }

  FunctionalMotif nested_pattern() {
    const Expr other =
        relay::make_if(condition_, make_call(constructor("None"), {}), make_call(constructor("Some"), {a_}));
    const Var x = param("x"), y = param("y"), z = param("z");
    const auto both = [](relay::Pattern a, relay::Pattern b) { return relay::make_pattern_tuple({a, b}); };
    return {{},
            relay::make_match(
                relay::make_tuple({bounded(a_), other}),
                {make_clause(both(make_pattern_var(x), pattern("Some", {make_pattern_var(y)})), ops::subtract(x, y)),
                 make_clause(both(make_pattern_var(z), make_pattern_wildcard()), z)},
                true)};
  }

  const IRModule& prelude_;
  Expr a_;
  Type type_;
  Expr condition_;
  size_t serial_;
};

}  // namespace

IRModule functional_prelude() { return relay::parse_module(kPrelude, "prelude of random programs"); }

FunctionalMotif make_functional_motif(Random& random, const IRModule& prelude, const Expr& a, const Expr& condition,
                                      size_t serial) {
  FunctionalMotif motif = MotifMaker(prelude, a, condition, serial).make(random.integer(0, MotifMaker::kKinds - 1));
  motif.value = bounded(motif.value);
  return motif;
}

}  // namespace headrace::kit
