#include "pass/round_trip.h"

#include <set>

#include "object/json.h"
#include "object/structural_equal.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
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

// A form of text, and where the data of constants lies beside it.
struct Form {
  std::vector<NDArray> weights;
  bool is_tir = false;

  std::string print(const IRModule& module) {
    return is_tir ? tir::print_module(module) : relay::print_module(module, {.weights = &weights});
  }
  IRModule parse(const std::string& text) const {
    return is_tir ? tir::parse_module(text, "<printed>")
                  : relay::parse_module(text, "<printed>", {.weights = &weights});
  }
};

Form form_of(const IRModule& module) {
  const auto& functions = module->functions();
  const bool is_tir = std::all_of(functions.begin(), functions.end(),
                                  [](const auto& entry) { return entry.second.template is<tir::PrimFuncNode>(); });
  return {.weights = {}, .is_tir = is_tir && !functions.empty()};
}

void check_text(const IRModule& module, std::string_view when) {
  Form form = form_of(module), again = form;
  const std::string text = form.print(module);
  HEADRACE_CHECK(text == again.print(module), "{}: printing twice gives two texts", when);
  check_weights(form.weights, when);
  IRModule read;
  try {
    read = form.parse(text);
  } catch (const UserError& error) {
    throw InternalError(fmt::format("{}: the text cannot be read back: {}", when, error.what()));
  }
  require_equal(module, Value(read), "the text", when);
}

void check_json(const IRModule& module, std::string_view when) {
  require_equal(module, load_json(save_json(Value(module))), "the JSON", when);
}

class RoundTrip : public PassInstrument {
 public:
  std::string name() const override { return "round trip"; }
  void enter_pass_ctx() override { checked_ = first_ = {}; }
  void run_before_pass(const IRModule& module, const PassInfo& info) override {
    if (checked_) return;
    first_ = module;
    check(module, "before pass", info);
    check_json(module, when_);
  }
  void run_after_pass(const IRModule& module, const PassInfo& info) override {
    if (module != checked_) check(module, "after pass", info);
  }
  void exit_pass_ctx() override {
    if (checked_ != first_) check_json(checked_, when_);
  }

 private:
  void check(const IRModule& module, std::string_view side, const PassInfo& info) {
    when_ = fmt::format("{} {}", side, info.name);
    check_text(module, when_);
    checked_ = module;
  }
  IRModule checked_, first_;  // the last program that was found right, and the first
  std::string when_;          // it was checked
};

}  // namespace

std::shared_ptr<PassInstrument> make_round_trip_instrument() { return std::make_shared<RoundTrip>(); }

}  // namespace headrace::pass
