#include "bench/scaling_work.h"

#include "driver/all_passes.h"
#include "interp/interp.h"
#include "object/array.h"
#include "object/json.h"
#include "object/structural_equal.h"
#include "object/structural_hash.h"
#include "partition/annotate.h"
#include "partition/extract.h"
#include "partition/merge.h"
#include "pass/pass.h"
#include "passes/pipeline.h"
#include "relay/infer/infer_type.h"
#include "relay/op_keys.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::bench {

namespace {

using Timed = std::function<void(const std::function<void()>&)>;
using Run = void (*)(const ScalingProgram&, const Timed&);

struct Row {
  const char* name;
  Run run;
};

void for_each_function(const IRModule& module, const std::function<void(const Expr&)>& visit) {
  for (const auto& [name, function] : module->functions()) visit(function);
}

void equal(const ScalingProgram& program, const Timed& timed) {
  const Value a(program.module), b(relay::parse_module(program.text));
  timed([&] { HEADRACE_CHECK(structural_equal(a, b), "what was read twice differs"); });
}

void load_json_text(const ScalingProgram& program, const Timed& timed) {
  const std::string json = save_json(Value(program.module));
  timed([&] { load_json(json); });
}

void destroy(const ScalingProgram& program, const Timed& timed) {
  IRModule module = relay::parse_module(program.text);
  timed([&] { module = {}; });
}

void rewrite(const ScalingProgram& program, const Timed& timed) {
  timed([&] {
    for_each_function(program.module, [](const Expr& function) {
      relay::rewrite_post_order(function, [](const Expr& before, const Expr& after) {
        const auto* call = before.as<relay::CallNode>();
        if (call == nullptr || call->as_op() == nullptr || call->as_op()->name != "nn.relu") return after;
        return Expr(relay::make_call("abs", {after.as<relay::CallNode>()->args[0]}));
      });
    });
  });
}

// Ones of the declared shapes, 2 for a symbol.
std::vector<NDArray> arguments_of(const IRModule& module) {
  std::vector<NDArray> args;
  const BaseFunc main = module->lookup("main");
  for (const relay::Var& param : main.as<relay::FunctionNode>()->params) {
    const auto* type = param->type_annotation.as<TensorTypeNode>();
    Shape shape;
    for (const PrimExpr& dim : type->shape) shape.push_back(as_int(dim).value_or(2));
    NDArray array = NDArray::empty(shape, type->dtype);
    for (int64_t i = 0; i < array.num_elements(); ++i) set_element(array.tensor(), i, 1);
    args.push_back(array);
  }
  return args;
}

void interpret(const ScalingProgram& program, const Timed& timed) {
  const std::vector<NDArray> args = arguments_of(program.module);
  timed([&] { interp::run_main(program.module, args); });
}

const Row kUntyped[] = {
    {"parse", [](const ScalingProgram& p, const Timed& timed) { timed([&] { relay::parse_module(p.text); }); }},
    {"destroy", destroy},
    {"print", [](const ScalingProgram& p, const Timed& timed) { timed([&] { relay::print_module(p.module); }); }},
    {"save_json", [](const ScalingProgram& p, const Timed& timed) { timed([&] { save_json(Value(p.module)); }); }},
    {"load_json", load_json_text},
    {"equal", equal},
    {"hash", [](const ScalingProgram& p, const Timed& timed) { timed([&] { structural_hash(Value(p.module)); }); }},
    {"well_formed", [](const ScalingProgram& p, const Timed& timed) { timed([&] { relay::verify(p.module); }); }},
    {"post_order",
     [](const ScalingProgram& p, const Timed& timed) {
       timed([&] { for_each_function(p.module, [](const Expr& f) { relay::post_order(f, [](const Expr&) {}); }); });
     }},
    {"free_vars",
     [](const ScalingProgram& p, const Timed& timed) {
       timed([&] { for_each_function(p.module, [](const Expr& f) { relay::free_vars(f); }); });
     }},
    {"rewrite", rewrite},
    {"InferType", [](const ScalingProgram& p, const Timed& timed) { timed([&] { relay::infer_type(p.module); }); }},
    {"interpret", interpret},
};

// The compiler of the works below; it supports all ops but those that shapes of programs have between others.
constexpr const char* kSomeCompiler = "bench";

bool is_for_compiler(const relay::CallNode& call) {
  return call.as_op() != nullptr && call.as_op()->name != "nn.relu" && !relay::is_stateful(*call.as_op());
}

void add_compiler() {
  static const bool once = [] {
    for (const std::string& op : op_names()) partition::set_target_check(get_op(op), kSomeCompiler, is_for_compiler);
    return true;
  }();
  static_cast<void>(once);
}

// Annotates, merges and partitions, each by its function.
void partition_by_passes(const ScalingProgram& program, const Timed& timed) {
  add_compiler();
  timed([&] {
    const IRModule annotated = partition::annotate_target(program.typed, {.targets = {kSomeCompiler}});
    partition::partition_graph(partition::merge_compiler_regions(annotated));
  });
}

void partition_by_label(const ScalingProgram& program, const Timed& timed) {
  partition::Labels labels;
  for_each_function(program.typed, [&](const Expr& function) {
    relay::post_order(function, [&](const Expr& expr) {
      const auto* call = expr.as<relay::CallNode>();
      if (call != nullptr && is_for_compiler(*call)) labels.emplace(expr.object(), kSomeCompiler);
    });
  });
  timed([&] { partition::partition_by_labels(program.typed, labels); });
}

pass::PassContext context_of_passes() {
  pass::PassContext context;
  context.opt_level = 4;
  context.infer_type = [](const IRModule& module) { return relay::infer_type(module); };
  context.config.set("relay.ConvertLayout.desired_layouts",
                     Value(Map<std::string, Value>{{"nn.conv2d", Value(Array<std::string>{"NHWC", "default"})}}));
  add_compiler();
  context.config.set("relay.AnnotateTarget.targets", Value(std::string(kSomeCompiler)));
  return context;
}

ScalingWork work_of(std::string name, std::vector<pass::Pass> passes) {
  const auto run = [passes = std::move(passes)](const ScalingProgram& program, const Timed& timed) {
    pass::PassContext context = context_of_passes();
    timed([&] { pass::run_passes(passes, program.typed, context); });
  };
  return {std::move(name), true, run};
}

std::vector<ScalingWork> make_works() {
  std::vector<ScalingWork> works;
  for (const Row& row : kUntyped) works.push_back({row.name, false, row.run});
  works.push_back({"print types", true,
                   [](const ScalingProgram& p, const Timed& timed) { timed([&] { relay::print_module(p.typed); }); }});
  works.push_back({"regions by passes", true, partition_by_passes});
  works.push_back({"regions by labels", true, partition_by_label});
  std::vector<pass::Pass> all = passes::canonical();
  for (pass::Pass& pass : passes::native({})) all.push_back(std::move(pass));
  works.push_back(work_of("canonical, native", std::move(all)));
  for (pass::Pass pass : driver::all_passes(driver::Ir::relay)) {
    pass.info.required.clear();
    if (pass.info.name != "InferType") works.push_back(work_of(pass.info.name, {pass}));
  }
  return works;
}

}  // namespace

const std::vector<ScalingWork>& scaling_works() {
  static const std::vector<ScalingWork> works = make_works();
  return works;
}

}  // namespace headrace::bench
