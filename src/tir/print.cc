#include "tir/print.h"

#include <cmath>

#include "base/stack.h"
#include "object/string.h"
#include "tir/post_order.h"
#include "tir/print_expr.h"
#include "tir/text_words.h"

namespace headrace::tir {

namespace {

constexpr size_t kLineWidth = 120;
constexpr int kSummaryDepth = 5;
constexpr size_t kSummaryWidth = 160;

std::string for_text(const ForNode& loop, const ExprPrinter& e) {
  std::string out = fmt::format("for {}", loop.var ? e.name(*loop.var) : "<null>");
  if (loop.var && loop.var->dtype != kIndexType) out += fmt::format(": {}", loop.var->dtype);
  const bool from_zero = is_int(loop.begin, 0) && loop.begin->dtype == loop.var->dtype;
  out += fmt::format(" in {}(", name_of(loop.kind));
  if (from_zero) return out + e.text(loop.extent) + ")";
  return out + fmt::format("begin={}, extent={})", e.text(loop.begin), e.text(loop.extent));
}

std::string let_text(const LetStmtNode& let, const ExprPrinter& e) {
  if (!let.var) return "let <null>";
  return fmt::format("let {}: {} = {}", e.name(*let.var), let.var->dtype, e.text(let.value));
}

std::string allocate_text(const AllocateNode& allocation, ExprPrinter& e) {
  return fmt::format("allocate {} in {}", e.declaration(allocation.buffer),
                     allocation.scope == Scope::registers ? "registers" : "workspace");
}

std::string simple_text(const Stmt& s, const ExprPrinter& e) {
  if (const auto* store = s.as<BufferStoreNode>())
    return fmt::format("{} = {}", e.indexed(store->buffer, store->indices), e.text(store->value));
  if (const auto* evaluate = s.as<EvaluateNode>()) return "evaluate " + e.text(evaluate->value);
  if (const auto* check = s.as<AssertNode>())
    return fmt::format("assert {}, {}", e.text(check->condition), in_quotes(check->message));
  return fmt::format("<{}>", s ? s->key() : "null");
}

bool opens_scope(const Stmt& s) { return s.is<LetStmtNode>() || s.is<AllocateNode>(); }

// Depth is that of one kernel's nest.
class StmtPrinter {
 public:
  explicit StmtPrinter(ExprPrinter& e) : e_(e) {}

  // Prints the statements of a block, without its braces.
  void block(const Stmt& body, size_t indent) {
    Stmt s = body;
    while (opens_scope(s)) {
      if (const auto* let = s.as<LetStmtNode>()) {
        parts(s, indent);
        line(indent, let_text(*let, e_) + ";");
        e_.forget_parts();
        s = let->body;
      } else {
        const auto* allocation = s.as<AllocateNode>();
        line(indent, allocate_text(*allocation, e_) + ";");
        s = allocation->body;
      }
    }
    const auto* seq = s.as<SeqNode>();
    if (seq == nullptr || seq->items.size() == 1) return statement(s, indent);
    for (size_t i = 0; i < seq->items.size(); ++i) {
      const Stmt item = seq->items[i];
      if (!opens_scope(item)) {
        statement(item, indent);
      } else if (i + 1 == seq->items.size()) {
        block(item, indent);
      } else {
        line(indent, "{");
        block(item, indent + 2);
        line(indent, "}");
      }
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void line(size_t indent, std::string_view text) {
    out_.append(indent, ' ');
    out_ += text;
    out_ += '\n';
  }
  void parts(const Stmt& s, size_t indent) {
    for (const std::string& definition : e_.define_parts(expressions_of(s))) line(indent, definition);
  }

  void statement(const Stmt& s, size_t indent) {
    if (is_stack_low()) throw_user_error("statements nest too deeply to be written as text");
    HEADRACE_CHECK(s.defined(), "a statement is null");
    parts(s, indent);
    if (const auto* loop = s.as<ForNode>()) {
      line(indent, for_text(*loop, e_) + " {");
      e_.forget_parts();
      block(loop->body, indent + 2);
      line(indent, "}");
    } else if (s.is<IfThenElseNode>()) {
      branches(s, indent);
    } else if (const auto* seq = s.as<SeqNode>()) {
      line(indent, "seq {");
      if (seq->items.size() == 1 && !opens_scope(seq->items[0])) {
        statement(seq->items[0], indent + 2);
      } else if (seq->items.size() == 1) {
        block(seq->items[0], indent + 2);
      } else {
        block(s, indent + 2);
      }
      line(indent, "}");
    } else {
      line(indent, simple_text(s, e_) + ";");
      e_.forget_parts();
    }
  }

  void branches(const Stmt& s, size_t indent) {
    const auto* branch = s.as<IfThenElseNode>();
    std::string head = fmt::format("if ({}) {{", e_.text(branch->condition));
    e_.forget_parts();
    while (true) {
      line(indent, head);
      block(branch->then_case, indent + 2);
      if (!branch->else_case) break;
      const auto* next = branch->else_case.as<IfThenElseNode>();
      if (next == nullptr || e_.has_parts({next->condition})) {
        line(indent, "} else {");
        block(branch->else_case, indent + 2);
        break;
      }
      head = fmt::format("}} else if ({}) {{", e_.text(next->condition));
      branch = next;
    }
    line(indent, "}");
  }

  ExprPrinter& e_;
  std::string out_;
};

// Values nest as deep as the user wrote them.
std::string value_text(const Value& value, int depth = 0) {
  const RawValue& raw = value.raw();
  if (depth > 100 || is_stack_low()) throw_user_error("an attribute nests too deeply to be written as text");
  if (raw.type_index == type_index::kNone) return "None";
  if (raw.type_index == type_index::kBool) return raw.v.v_int != 0 ? "True" : "False";
  if (raw.type_index == type_index::kInt) return fmt::format("{}", raw.v.v_int);
  if (raw.type_index == type_index::kFloat)
    return std::isnan(raw.v.v_float) ? "nanf64" : fmt::format("{}f64", raw.v.v_float);
  if (raw.type_index == type_index::kDataType)
    return fmt::format("dtype({})", in_quotes(value.as<DataType>().to_string()));
  if (is_string(raw)) return in_quotes(string_of(raw));
  std::vector<std::string> items;
  if (const auto* array = value.as_node<ArrayObj>()) {
    for (const Value& item : array->items) items.push_back(value_text(item, depth + 1));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  if (const auto* map = value.as_node<MapObj>()) {
    for (const auto& [key, item] : map->items)
      items.push_back(value_text(key, depth + 1) + ": " + value_text(item, depth + 1));
    return fmt::format("{{{}}}", fmt::join(items, ", "));
  }
  throw_user_error("an attribute that holds a {} has no text form", kind_name(raw));
}

// Writes the attributes behind the signature; the symbol only where it is not the function's name.
std::string attrs_text(const PrimFuncNode& function, const std::string& name) {
  std::vector<std::string> items;
  const auto symbol = function.attrs.get("global_symbol");
  if (!symbol) items.push_back("\"global_symbol\" = None");
  for (const auto& [key, value] : function.attrs) {
    if (key == "global_symbol" && is_string(value.raw()) && value.as<std::string>() == name) continue;
    items.push_back(fmt::format("{} = {}", in_quotes(key), value_text(value)));
  }
  return items.empty() ? "" : fmt::format(" attrs {{{}}}", fmt::join(items, ", "));
}

std::string signature(const PrimFuncNode& function, const std::string& name, ExprPrinter& e) {
  const size_t count = function.params.size();
  const size_t first_output = count - std::min(count, static_cast<size_t>(std::max<int64_t>(0, function.num_outputs)));
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < count; ++i) (i < first_output ? inputs : outputs).push_back(e.declaration(function.params[i]));
  const std::string head = "prim_func @" + (is_identifier(name, true) ? name : in_quotes(name));
  const std::string attrs = attrs_text(function, name);
  const std::string one_line =
      fmt::format("{}({}) -> ({}){} {{", head, fmt::join(inputs, ", "), fmt::join(outputs, ", "), attrs);
  if (one_line.size() <= kLineWidth) return one_line;
  return fmt::format("{}(\n    {}\n) -> (\n    {}\n){} {{", head, fmt::join(inputs, ",\n    "),
                     fmt::join(outputs, ",\n    "), attrs);
}

std::string function_text(const PrimFuncNode& function, const std::string& name) {
  ExprPrinter e;
  std::string out = signature(function, name, e) + "\n";
  StmtPrinter printer(e);
  printer.block(function.body, 2);
  return out + printer.take() + "}\n";
}

std::string header() { return fmt::format("#[tir_version = \"{}\"]\n", kTextVersion); }

std::string shortened(std::string text) {
  if (text.size() > kSummaryWidth) text.replace(kSummaryWidth - 3, std::string::npos, "...");
  return text;
}

}  // namespace

std::string print_module(const IRModule& module) {
  std::string out = header();
  if (!module->attrs.empty()) out += fmt::format("\nattributes {}\n", value_text(Value(module->attrs)));
  for (const auto& [var, function] : module->functions()) {
    const auto* prim_func = function.as<PrimFuncNode>();
    if (prim_func == nullptr) throw_user_error("the function '@{}' is not one of tir", var->name_hint);
    out += "\n" + function_text(*prim_func, var->name_hint);
  }
  return out;
}

std::string print_function(const PrimFunc& function) {
  const auto symbol = function->attrs.get("global_symbol");
  const bool has_name = symbol && is_string(symbol->raw());
  return header() + "\n" + function_text(*function, has_name ? symbol->as<std::string>() : "function");
}

std::string summary(const Stmt& s) {
  try {
    ExprPrinter e(kSummaryDepth);
    if (const auto* loop = s.as<ForNode>()) return shortened(for_text(*loop, e));
    if (const auto* branch = s.as<IfThenElseNode>())
      return shortened(fmt::format("if ({})", e.text(branch->condition)));
    if (const auto* let = s.as<LetStmtNode>()) return shortened(let_text(*let, e));
    if (const auto* allocation = s.as<AllocateNode>()) return shortened(allocate_text(*allocation, e));
    return shortened(s.is<SeqNode>() ? "seq" : simple_text(s, e));
  } catch (const UserError&) {
    return s ? std::string(s->key()) : "null";
  }
}

std::string summary(const PrimExpr& expr) {
  try {
    return shortened(ExprPrinter(kSummaryDepth).text(expr));
  } catch (const UserError&) {
    return std::string(expr->key());
  }
}

}  // namespace headrace::tir
