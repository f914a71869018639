#include "passes/layout/alter_op_layout.h"

#include <algorithm>

#include "object/function.h"
#include "ops/attrs_copy.h"
#include "ops/image/image.h"
#include "ops/nn/adaptive_pool.h"
#include "ops/nn/conv.h"
#include "ops/nn/pool.h"
#include "ops/tensor/rearrange.h"
#include "passes/layout/convert_layout.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/rewrite_calls.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

constexpr std::string_view kAlteration = "layout alteration";

// Calls `visit` with the attributes of an op that has layouts, as the type of their family; returns whether it has.
template <typename F>
bool with_layout_attrs(const CallNode& call, F&& visit) {
  const auto as = [&]<typename T>(const T*) {
    if (!call.attrs.is<T>()) return false;
    visit(call.attrs_as<T>());
    return true;
  };
  return call.attrs &&
         (as(static_cast<ops::ConvAttrs*>(nullptr)) || as(static_cast<ops::PoolAttrs*>(nullptr)) ||
          as(static_cast<ops::GlobalPool2DAttrs*>(nullptr)) || as(static_cast<ops::AdaptivePoolAttrs*>(nullptr)) ||
          as(static_cast<ops::Resize2DAttrs*>(nullptr)));
}

// Returns the layouts of data and kernel that a call names; empty for an op without layouts.
Array<std::string> layouts_of(const CallNode& call) {
  Array<std::string> result;
  with_layout_attrs(call, [&]<typename T>(const T& attrs) {
    if constexpr (requires { attrs.kernel_layout; }) {
      result.push_back(attrs.data_layout);
      result.push_back(attrs.kernel_layout);
    } else {
      result.push_back(attrs.layout);
    }
  });
  return result;
}

bool is_packed(const CallNode& call) {
  const Array<std::string> layouts = layouts_of(call);
  return std::any_of(layouts.begin(), layouts.end(),
                     [](const std::string& layout) { return !layout.empty() && Layout::parse(layout).is_packed(); });
}

// Returns `given`, whose operands and result are as `written` stores them, computed in other layouts: with changes of
// layout around it. ConvertLayout's rules start from layouts that are not packed, so calls after it stay as written.
Expr in_other_layouts(const CallNode& written, const CallNode& given, const Array<std::string>& layouts) {
  const Array<std::string> old = layouts_of(written);
  const auto change = [&](const Expr& expr, const std::string& from, const std::string& to) {
    return from == to ? expr : ops::layout_transform(expr, from, to, given.span);
  };
  Array<Expr> args = given.args;
  for (size_t i = 0; i < layouts.size(); ++i) args.set(i, change(args[i], old[i], layouts[i]));
  Expr result;
  with_layout_attrs(given, [&]<typename T>(const T& attrs) {
    std::string out = old[0];
    const Attrs changed = ops::copy_of_own_type(attrs, [&](T& a) {
      if constexpr (requires { a.out_layout; }) {
        out = written.attrs_as<T>().out_layout.empty() ? out : written.attrs_as<T>().out_layout;
        a.out_layout = "";
      }
    });
    const Expr call = copy_with(given, [&](CallNode& copy) { copy.args = args, copy.attrs = changed; });
    result = change(call, layouts[0], out);
  });
  return result;
}

// Returns the attributes of `call` with the layouts of `written`, a call of the same op.
Attrs attrs_as_written(const CallNode& call, const CallNode& written) {
  Attrs result;
  with_layout_attrs(call, [&]<typename T>(const T& attrs) {
    const T& old = written.attrs_as<T>();
    result = ops::copy_of_own_type(attrs, [&](T& a) {
      if constexpr (requires { a.kernel_layout; }) {
        a.data_layout = old.data_layout;
        a.kernel_layout = old.kernel_layout;
      } else {
        a.layout = old.layout;
      }
      if constexpr (requires { a.out_layout; }) a.out_layout = old.out_layout;
    });
  });
  return result;
}

PackedFunc find_alteration(const OpNode& op) {
  const Value* value = op.find(OpKey<Value>{kAlterLayoutAttr});
  if (value == nullptr || value->is_none()) return {};
  if (!value->is<PackedFunc>())
    throw_user_error("the attribute '{}' of op '{}' is not a function that alters layouts", kAlterLayoutAttr, op.name);
  return value->as<PackedFunc>();
}

bool is_any_altered() {
  for (const std::string& name : op_names()) {
    if (find_alteration(*get_op(name))) return true;
  }
  return false;
}

// Alters calls in two steps: what the functions return, in the layouts as written so that types stay, and then the
// layouts. Between them calls are copied and typed anew; a span of its own marks each call that gets other layouts.
class LayoutAlteration {
 public:
  IRModule run(const IRModule& module) {
    const auto find = [&](const OpNode& op) -> CallRewriteFn {
      const PackedFunc alter = find_alteration(op);
      if (!alter) return {};
      return [this, alter](const CallNode& call, const Array<Type>& types) { return altered(alter, call, types); };
    };
    const IRModule rewritten = rewrite_calls(module, {.what = kAlteration, .attr = kAlterLayoutAttr, .find = find});
    if (marked_.empty()) return rewritten;
    const IRModule converted = convert_layout(rewritten, [&](const CallNode& call) { return choice_of(call); });
    return rewrite_bodies(converted, [&](const Expr& body) { return unmarked(body); });
  }

 private:
  struct Marked {
    Span written;
    Array<std::string> layouts;
  };

  Expr altered(const PackedFunc& alter, const CallNode& call, const Array<Type>& types) {
    const Array<Type> arguments(types.begin(), types.end() - 1);
    const Value attrs = call.attrs ? Value(call.attrs) : Value();
    const Value result = alter(attrs, call.args, arguments, types[types.size() - 1]);
    const Expr expr = given_expression(result, call, kAlteration);
    const auto* given = expr ? expr.as<CallNode>() : nullptr;
    if (given == nullptr || given->op != call.op) return expr;
    const Array<std::string> layouts = layouts_of(*given);
    if (layouts.empty() || layouts.to_vector() == layouts_of(call).to_vector()) return expr;
    check_layouts(fmt::format("the {} of {}", kAlteration, call.as_op()->name), call.as_op()->name, layouts);
    if (is_packed(call)) return in_other_layouts(call, *given, layouts);
    const Span written = given->span ? given->span : call.span;
    const Span mark = written ? copy_with(*written, [](SpanNode&) {}) : make_span("");
    marked_.emplace(mark, Marked{written, layouts});
    return copy_with(*given, [&](CallNode& copy) {
      copy.attrs = attrs_as_written(*given, call);
      copy.span = mark;
    });
  }

  std::optional<Array<std::string>> choice_of(const CallNode& call) const {
    const auto found = marked_.find(call.span);
    const bool is_chosen = found != marked_.end() && layouts_of(call).size() == found->second.layouts.size();
    return is_chosen ? std::optional(found->second.layouts) : std::nullopt;
  }

  Expr unmarked(const Expr& body) const {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr&, const Expr& after) -> Expr {
      const auto* call = after.as<CallNode>();
      const auto found = call == nullptr || !call->span ? marked_.end() : marked_.find(call->span);
      if (found == marked_.end()) return after;
      const auto& [written, wanted] = found->second;
      const Array<std::string> layouts = layouts_of(*call);
      if (layouts.size() == wanted.size() && layouts[0] != wanted[0])
        throw_at(written, call->as_op()->name,
                 fmt::format("its {} ({}) asks for {}, in which its operands and result cannot be stored", kAlteration,
                             kAlterLayoutAttr, wanted[0]));
      return copy_with(*call, [&](CallNode& copy) { copy.span = written; });
    });
  }

  std::unordered_map<Span, Marked> marked_;
};

}  // namespace

IRModule alter_op_layout(const IRModule& module) { return is_any_altered() ? LayoutAlteration().run(module) : module; }

}  // namespace headrace::passes
