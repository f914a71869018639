#include "pass/round_trip.h"

#include <set>

#include "object/json.h"
#include "object/structural_equal.h"
#include "relay/parse.h"
#include "relay/print.h"
#include "tir/parse.h"
#include "tir/print.h"

namespace headrace::pass {

namespace {

void require_equal(const IRModule& module, const Value& read, std::string_view form, std::string_view when) {
  const auto mismatch = first_mismatch(Value(module), read);
  if (!mismatch) return;
  throw InternalError(fmt::format("{}: {} reads back as another program: at '{}': {} ({} became {})", when, form,
                                  mismatch->path, mismatch->reason, mismatch->left, mismatch->right));
}

void check_weights(const std::vector<NDArray>& weights, std::string_view when) {
  std::set<std::pair<uint64_t, size_t>> seen;
  for (const NDArray& data : weights) {
    HEADRACE_CHECK(seen.insert({data.content_hash(), data.size_bytes()}).second, "{}: a constant is written twice",
                   when);
  }
}

bool is_loops(const IRModule& module) {
  return std::any_of(module->functions.begin(), module->functions.end(),
                     [](const auto& entry) { return !entry.second.template is<relay::FunctionNode>(); });
}

std::string print(const IRModule& module, std::vector<NDArray>& weights) {
  return is_loops(module) ? tir::print_module(module) : relay::print_module(module, {.weights = &weights});
}

IRModule parse(const IRModule& like, const std::string& text, const std::vector<NDArray>& weights) {
  return is_loops(like) ? tir::parse_module(text, "<printed>")
                        : relay::parse_module(text, "<printed>", {.weights = &weights});
}

void check_round_trip(const IRModule& module, std::string_view when) {
  std::vector<NDArray> weights, again;
  const std::string text = print(module, weights);
  HEADRACE_CHECK(text == print(module, again), "{}: printing twice gives two texts", when);
  check_weights(weights, when);
  IRModule read;
  try {
    read = parse(module, text, weights);
  } catch (const UserError& error) {
    throw InternalError(fmt::format("{}: the text cannot be read back: {}", when, error.what()));
  }
  require_equal(module, Value(read), "the text", when);
  require_equal(module, load_json(save_json(Value(module))), "the JSON", when);
}

class RoundTrip : public PassInstrument {
 public:
  std::string name() const override { return "round trip"; }
  void enter_pass_ctx() override { checked_ = {}; }
  void run_before_pass(const IRModule& module, const PassInfo& info) override {
    if (!checked_) check(module, "before pass", info);
  }
  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    if (module != checked_) check(module, "after pass", info);
  }

 private:
  void check(const IRModule& module, std::string_view side, const PassInfo& info) {
    check_round_trip(module, fmt::format("{} {}", side, info.name));
    checked_ = module;
  }
  IRModule checked_;  // the last program that was found right
};

}  // namespace

std::shared_ptr<PassInstrument> make_round_trip_instrument() { return std::make_shared<RoundTrip>(); }

}  // namespace headrace::pass
