#include "bench/scaling.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "object/array.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "ops/all_ops.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/visit.h"

namespace headrace::bench {

namespace {

using tools::Report;

struct Form {
  const char* name;
  bool is_chain;
  bool has_flat_types;  // a type nests 200 deep at most (relay/infer)
  Expr (*around)(const Expr& inner, const relay::Var& x);
};

const Form kForms[] = {
    {"calls", true, true,
     [](const Expr& inner, const relay::Var&) -> Expr { return relay::make_call("nn.relu", {inner}); }},
    {"lets", false, true,
     [](const Expr& inner, const relay::Var& x) -> Expr {
       return relay::make_let(relay::make_var("v"), relay::make_call("nn.relu", {x}), inner);
     }},
    {"tuples", false, false, [](const Expr& inner, const relay::Var&) -> Expr { return relay::make_tuple({inner}); }},
    {"functions", false, false,
     [](const Expr& inner, const relay::Var&) -> Expr { return relay::make_function({}, inner); }},
    {"branches", false, true,
     [](const Expr& inner, const relay::Var& x) -> Expr {
       return relay::make_if(relay::make_call("less", {x, x}), inner, x);
     }},
};

IRModule make_program(const Form& form, int64_t size) {
  const relay::Var x = relay::make_var("x", make_tensor_type(Shape{}, DataType::float_(32)));
  Expr body = x;
  for (int64_t i = 0; i < size; ++i) body = form.around(body, x);
  return make_module(relay::make_function({x}, body));
}

// The best seconds of each kind of work, in the order in which they ran first.
class Stopwatch {
 public:
  void operator()(const char* work, const std::function<void()>& run) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    auto at = std::find_if(best_.begin(), best_.end(), [&](const auto& one) { return one.first == work; });
    if (at == best_.end()) at = best_.insert(at, {work, std::numeric_limits<double>::infinity()});
    at->second = std::min(at->second, seconds.count());
  }

  const std::vector<std::pair<std::string, double>>& best() const { return best_; }

 private:
  std::vector<std::pair<std::string, double>> best_;
};

void measure_once(const Form& form, int64_t size, Stopwatch& timed) {
  IRModule program, again, from_json;
  std::string text, json;
  timed("make", [&] { program = make_program(form, size); });
  const Expr main = program->lookup("main");
  int64_t count = 0;
  timed("visit", [&] { relay::post_order(main, [&](const Expr&) { ++count; }); });
  HEADRACE_CHECK(count > size, "{} of {} nodes were visited", count, size);
  const relay::Var other = relay::make_var("x", make_tensor_type(Shape{}, DataType::float_(32)));
  timed("rewrite", [&] {
    relay::rewrite_post_order(main, [&](const Expr& before, const Expr& after) {
      const auto* var = before.as<relay::VarNode>();
      return var != nullptr && var->name_hint == "x" ? other : after;
    });
  });
  timed("print", [&] { text = relay::print_module(program); });
  timed("parse", [&] { again = relay::parse_module(text); });
  bool equal = false;
  timed("equal", [&] { equal = structural_equal(Value(program), Value(again)); });
  uint64_t hashes[2];
  timed("hash", [&] { hashes[0] = structural_hash(Value(program)); });
  hashes[1] = structural_hash(Value(again));
  timed("save_json", [&] { json = save_json(Value(program)); });
  timed("load_json", [&] { from_json = load_json(json).as<IRModule>(); });
  HEADRACE_CHECK(equal && hashes[0] == hashes[1] && structural_equal(Value(program), Value(from_json)),
                 "{} of {}: what was read back differs", form.name, size);
  timed("destroy", [&] { from_json = {}; });
  if (form.has_flat_types) timed("infer", [&] { relay::infer_type(program); });
}

}  // namespace

Report measure_scaling(const ScalingOptions& options) {
  ops::register_all_ops();
  Array<Value> rows;
  for (const Form& form : kForms) {
    const int64_t size = form.is_chain ? options.chain : options.nesting;
    Stopwatch small, large;
    for (int round = 0; round < options.rounds; ++round) {
      measure_once(form, size / 4, small);
      measure_once(form, size, large);
    }
    for (size_t i = 0; i < large.best().size(); ++i) {
      const auto& [work, seconds] = large.best()[i];
      rows.push_back(Value(Report{{"form", Value(form.name)},
                                  {"size", Value(size)},
                                  {"work", Value(work)},
                                  {"seconds", Value(seconds)},
                                  {"ratio", Value(seconds / small.best()[i].second)}}));
    }
  }
  return {{"rounds", Value(int64_t{options.rounds})}, {"rows", Value(rows)}};
}

}  // namespace headrace::bench
