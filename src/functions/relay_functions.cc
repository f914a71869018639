#include "arith/canonical.h"
#include "driver/all_passes.h"
#include "functions/register_functions.h"
#include "object/function.h"
#include "ops/op_handles.h"
#include "pass/pass_objects.h"
#include "passes/forms/to_basic_block_normal_form.h"
#include "passes/fuse/fuse_borders.h"
#include "relay/bind.h"
#include "relay/infer/check_kind.h"
#include "relay/infer/infer_type.h"
#include "relay/infer/result_types.h"
#include "relay/infer/solver_session.h"
#include "relay/infer/unmatched_cases.h"
#include "relay/text/parse.h"
#include "relay/text/print.h"
#include "relay/text/weights_file.h"
#include "relay/unique_binders.h"
#include "relay/verify.h"
#include "relay/visit.h"
#include "tir/print.h"
#include "tir/stmt.h"

namespace headrace::functions {

namespace {

using relay::Var;

bool is_tir(const IRModule& module) {
  const Map<GlobalVar, BaseFunc> functions = module->functions();
  return !functions.empty() && (*functions.begin()).second.is<tir::PrimFuncNode>();
}

// Wraps a user's annotation function for the printer. None means no annotation. Throws UserError if it returns anything
// else than text.
std::function<std::string(const Expr&)> annotation_of(const std::optional<PackedFunc>& annotate) {
  if (!annotate) return {};
  return [annotate](const Expr& expr) -> std::string {
    const Value answer = (*annotate)(expr);
    if (answer.is_none()) return "";
    if (!answer.is<std::string>())
      throw_user_error("astext: annotate gave {}, expected a str", kind_name(answer.raw()));
    return answer.as<std::string>();
  };
}

std::string as_text(const ObjectRef& object, bool show_meta_data, const std::optional<PackedFunc>& annotate,
                    bool show_types) {
  const relay::PrintOptions options{
      .show_meta_data = show_meta_data, .show_types = show_types, .annotate = annotation_of(annotate)};
  if (object.is<IRModuleNode>()) {
    const IRModule module = snapshot(object.cast<IRModuleNode>());
    return is_tir(module) ? tir::print_module(module) : relay::print_module(module, options);
  }
  if (const auto function = object.cast<tir::PrimFuncNode>()) return tir::print_function(function);
  if (const Expr expr = object.cast<ExprNode>()) return relay::print_expr(expr, options);
  if (const Type type = object.cast<TypeNode>()) return relay::type_text(type);
  if (const PrimExpr dim = object.cast<PrimExprNode>()) return to_string(dim);
  throw_user_error("a {} has no text form", object->key());
}

Array<Expr> post_order_of(const Expr& root) {
  std::vector<Expr> order;
  relay::post_order(root, [&](const Expr& expr) { order.push_back(expr); });
  return Array<Expr>(order);
}

Array<std::string> breaches(const ObjectRef& object) {
  if (object.is<IRModuleNode>()) return Array<std::string>(relay::find_breaches(snapshot(object.cast<IRModuleNode>())));
  if (const Expr expr = object.cast<ExprNode>()) return Array<std::string>(relay::find_breaches(expr));
  throw_user_error("expected an IRModule or an expression, got {}", object->key());
}

// Returns the borders of the groups that FuseOps makes in the current context; none if FuseOps is disabled there.
Array<Map<std::string, Value>> fusion_borders(const IRModule& module) {
  const pass::PassContext context = pass::to_context(pass::current_context());
  Array<Map<std::string, Value>> borders;
  if (context.is_disabled(driver::get_pass("FuseOps").info)) return borders;
  for (const auto& [code, producer, users, message] : passes::find_fuse_borders(
           relay::infer_type(relay::unique_binders(snapshot(module))), passes::fuse_options(context))) {
    borders.push_back({{"producer", producer},
                       {"users", Array<Expr>(users)},
                       {"reason", std::string(passes::name_of_fuse_reason(code))},
                       {"message", message}});
  }
  return borders;
}

// The table to which meta[...] in a text refers: devices, the data of constants, read from a file or given, and other
// nodes.
struct MetaTable {
  std::optional<std::vector<NDArray>> constants;
  std::optional<std::vector<std::string>> devices;
  Map<std::string, Array<ObjectRef>> nodes;

  MetaTable(const std::optional<std::string>& file, const Map<std::string, Value>& given) {
    if (file) constants = relay::read_weights(*file);
    if (const auto list = given.get("relay.Constant")) {
      if (file) throw_user_error("the constants of the text are given twice: in the file '{}' and in a table", *file);
      constants = list->as<Array<NDArray>>().to_vector();
    }
    for (const auto& [kind, list] : given) {
      if (kind == "VirtualDevice") devices = list.as<Array<std::string>>().to_vector();
      if (kind != "VirtualDevice" && kind != "relay.Constant") nodes.set(kind, list.as<Array<ObjectRef>>());
    }
  }
  relay::ParseOptions options() const {
    return {.weights = constants ? &*constants : nullptr,
            .virtual_devices = devices ? &*devices : nullptr,
            .meta_nodes = nodes};
  }
};

IRModule parse_module(const std::string& source, const std::string& text, const std::optional<std::string>& weights,
                      const Array<std::string>& import_paths, const std::optional<IRModule>& init_module,
                      const Map<std::string, Value>& meta) {
  const MetaTable table(weights, meta);
  relay::ParseOptions options = table.options();
  options.import_paths = import_paths.to_vector();
  options.init_module = init_module.value_or(IRModule());
  return relay::parse_module(text, source, options);
}

Expr parse_expr(const std::string& source, const std::string& text, const std::optional<std::string>& weights) {
  const MetaTable table(weights, {});
  return relay::parse_expr(text, source, table.options());
}

void import_text(const IRModule& module, const std::string& name, const Array<std::string>& import_paths) {
  relay::import_text(module, name, {.import_paths = import_paths.to_vector()});
}

void register_text_functions() {
  register_global("relay.parser.ParseModule", make_packed(&parse_module));
  register_global("relay.parser.ParseExpr", make_packed(&parse_expr));
  register_global("relay.parser.Import", make_packed(&import_text));
  register_global("relay.ir.AsText", make_packed(&as_text));
  register_global("relay.ir.TensorTypeSize", make_packed(&arith::size_of));
}

void register_walks() {
  register_global("relay.analysis.post_order", make_packed(&post_order_of));
  register_global("relay.analysis.free_vars",
                  make_packed([](const Expr& expr) { return Array<Var>(relay::free_vars(expr)); }));
  register_global("relay.analysis.all_vars",
                  make_packed([](const Expr& expr) { return Array<Var>(relay::all_vars(expr)); }));
  register_global("relay.ir.Children",
                  make_packed([](const Expr& expr) { return Array<Expr>(relay::children_of(expr)); }));
  register_global("relay.ir.Bind", make_packed(&relay::bind));
  register_global("relay.build_module.BindParamsByName", make_packed(&relay::bind_params_by_name));
}

// The two relations that Relay's tests of types ask for by the name of a global function.
constexpr std::string_view kBroadcast = "tvm.relay.type_relation.Broadcast";
constexpr std::string_view kIdentity = "tvm.relay.type_relation.Identity";

// Adds a constraint by the name of an op or of one of the relations above.
void add_constraint(relay::SolverSession& session, std::string_view name, const Array<Type>& types) {
  const bool is_identity = name == kIdentity;
  session.add(is_identity ? Op() : get_op(name == kBroadcast ? op::kAdd.name() : name), types);
}

// Registers a relation as a function from the types of the inputs to the result's; None where they do not determine it.
void register_relation(std::string_view name) {
  register_global(std::string(name), make_packed([name](Array<Type> types) {
                    relay::SolverSession session;
                    const Type result = make_incomplete_type();
                    types.push_back(result);
                    add_constraint(session, name, types);
                    return session.solve() ? Value(session.resolve(result)) : Value();
                  }));
}

// Returns a function that gives the calls of one new session of the type solver by their names.
PackedFunc solver_session() {
  const auto session = std::make_shared<relay::SolverSession>();
  return make_packed([session](const std::string& name) {
    if (name == "Solve") return make_packed([session] { return session->solve(); });
    if (name == "Unify") return make_packed([session](const Type& a, const Type& b) { return session->unify(a, b); });
    if (name == "Resolve") return make_packed([session](const Type& type) { return session->resolve(type); });
    if (name == "AddConstraint")
      return make_packed([session](const Ref<TypeRelationNode>& relation) {
        add_constraint(*session, relation->name, relation->args);
      });
    throw_user_error("the type solver has no '{}': it has AddConstraint, Resolve, Solve and Unify", name);
  });
}

void register_analyses() {
  register_global("relay.analysis.TypeSolver", make_packed(&solver_session));
  register_relation(kBroadcast);
  register_relation(kIdentity);
  register_global("relay.analysis.breaches", make_packed(&breaches));
  register_global("relay.analysis.check_kind", make_packed([](const Type& type, const IRModule& module) {
                    return relay::declared_kind(type, module);
                  }));
  register_global("relay.analysis.unmatched_cases",
                  make_packed([](const Ref<relay::MatchNode>& match, const IRModule& module) {
                    return Array<relay::Pattern>(relay::unmatched_cases(*match, module));
                  }));
  register_global("relay.analysis.check_basic_block_normal_form", make_packed(&passes::is_basic_block_normal_form));
  register_global("relay.analysis.fusion_borders", make_packed(&fusion_borders));
  register_global("relay.analysis.infer_type_expr", make_packed([](const Expr& expr, const IRModule& module) {
                    const Expr typed =
                        relay::infer_type(relay::unique_binders(expr), module ? snapshot(module) : module);
                    // Inference may write another node, with the types that it found in annotations.
                    if (!expr->has_checked_type()) expr->set_checked_type(typed->checked_type());
                    return typed;
                  }));
}

}  // namespace

void register_relay_functions() {
  register_text_functions();
  register_walks();
  register_analyses();
  register_global("relay.backend.InferTypeIfSettled", make_packed([](const IRModule& module) {
                    return relay::infer_type_if_settled(relay::unique_binders(snapshot(module)));
                  }));
  // Adds what Relay's parser gives: types, also those of results, where inference finds them.
  register_global("relay.parser.WithTypes", make_packed([](const IRModule& module) {
                    const IRModule typed = relay::infer_type_if_settled(relay::unique_binders(snapshot(module)));
                    const IRModule written = relay::with_result_types(typed);
                    return written == typed ? typed : relay::infer_type_if_settled(written);
                  }));
}

}  // namespace headrace::functions
