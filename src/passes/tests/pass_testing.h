// Helpers of the tests of passes: reading programs, running one pass, comparing results.
#pragma once

#include <gtest/gtest.h>

#include "interp/interp.h"
#include "kit/golden.h"
#include "ops/all_ops.h"
#include "pass/instruments.h"
#include "passes/pipeline.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::passes {

inline IRModule read(const std::string& body) {
  ops::register_all_ops();
  return relay::infer_type(relay::parse_module("#[version = \"0.0.5\"]\n" + body, "test.relay"));
}

inline pass::PassContext typed_context() {
  pass::PassContext context;
  context.opt_level = 4;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  context.instruments = {pass::make_verify_instrument([](const IRModule& module) { relay::verify(module); })};
  return context;
}

// Runs the pass of that name, as it runs where it is named.
inline IRModule run_pass(const std::string& name, const IRModule& module,
                         const pass::PassContext& context = typed_context()) {
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (pass::Pass pass : list) {
      if (pass.info.name != name) continue;
      return pass::run_passes({pass}, module, context);
    }
  }
  throw std::runtime_error("no pass " + name);
}

inline pass::PassContext with_option(const std::string& key, const Value& value) {
  pass::PassContext context = typed_context();
  context.config.set(key, value);
  return context;
}

inline std::string main_after(const std::string& pass, const std::string& text, const pass::PassContext& context) {
  return relay::print_expr(run_pass(pass, read(text), context)->lookup("main").as<relay::FunctionNode>()->body);
}

// An attribute of an op, for one test.
class OpAttr {
 public:
  OpAttr(const char* op, std::string key, Value value) : op_(get_op(op)), key_(std::move(key)) {
    op_->set(OpKey<Value>{key_}, std::move(value));
  }
  ~OpAttr() { op_->erase(key_); }

 private:
  Op op_;
  std::string key_;
};

// Returns a constant, of 1 MB by default, whose elements are 2. It records when its memory is freed.
inline Expr logged_constant(std::vector<std::string>& log, const std::string& name, const Shape& shape = {512, 512}) {
  const auto memory = std::make_shared<std::vector<float>>(static_cast<size_t>(num_elements(shape)), 2.0F);
  return relay::make_constant(NDArray::view(memory->data(), shape, DataType::float_(32),
                                            [memory, &log, name] { log.push_back("free " + name); }));
}

inline IRModule typed_main(const Array<relay::Var>& params, const Expr& body) {
  ops::register_all_ops();
  const IRModule module = make_module();
  module->add_function(make_global_var("main"), relay::make_function(params, body));
  return relay::infer_type(module);
}

inline const relay::FunctionNode& main_of(const IRModule& module) {
  return *module->lookup("main").as<relay::FunctionNode>();
}

// Returns how many calls of the op @main has.
inline int count_calls(const IRModule& module, std::string_view op) {
  int count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& node) {
    const auto* call = node.as<relay::CallNode>();
    count += call != nullptr && call->as_op() != nullptr && call->as_op()->name == op ? 1 : 0;
  });
  return count;
}

inline NDArray ramp(const Shape& shape, float start) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  for (int64_t i = 0; i < array.num_elements(); ++i) array.data<float>()[i] = start + 0.25f * static_cast<float>(i);
  return array;
}

// Returns in what the results of two programs differ by more than a part of them (or of 1, where they are smaller);
// nothing where they agree. NaN agrees with NaN.
inline std::optional<std::string> difference_of_results(const IRModule& a, const IRModule& b,
                                                        const std::vector<NDArray>& args, double tolerance = 1e-5) {
  const auto want = interp::run_main(a, args), got = interp::run_main(b, args);
  if (want.size() != got.size()) return fmt::format("{} results became {}", want.size(), got.size());
  for (size_t r = 0; r < want.size(); ++r) {
    if (want[r].shape() != got[r].shape() || want[r].dtype() != got[r].dtype())
      return fmt::format("result {} has another type", r);
    for (int64_t i = 0; i < want[r].num_elements(); ++i) {
      const double x = element_as_double(want[r].tensor(), i), y = element_as_double(got[r].tensor(), i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (!(std::abs(x - y) <= tolerance * std::max(1.0, std::abs(x))))
        return fmt::format("result {} element {}: {} became {}", r, i, x, y);
    }
  }
  return std::nullopt;
}

inline void expect_same_results(const IRModule& a, const IRModule& b, const std::vector<NDArray>& args,
                                double tolerance = 1e-5) {
  if (const auto difference = difference_of_results(a, b, args, tolerance)) FAIL() << *difference;
}

// Returns whether this test program has a suite or test of that name: "Suite" or "Suite.Test".
inline bool has_test(std::string_view name) {
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    if (suite.name() == name) return true;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      if (fmt::format("{}.{}", suite.name(), suite.GetTestInfo(k)->name()) == name) return true;
    }
  }
  return false;
}

}  // namespace headrace::passes
