#include <unordered_set>

#include "ir/text_names.h"
#include "relay/patterns/pattern_index.h"
#include "relay/patterns/pattern_text.h"
#include "relay/text/print.h"

namespace headrace::relay {

namespace {

// Patterns that nest deeper are cut into definitions, so that any pattern reads back.
constexpr int kMaxPrintedNesting = 32;

std::string value_text(const Value& value);

std::string list_text(const std::vector<Value>& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) text += (i == 0 ? "" : ", ") + value_text(items[i]);
  return text + "]";
}

std::string real_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".einf") == std::string::npos ? text + ".0" : text;
}

std::string value_text(const Value& value) {
  const RawValue& raw = value.raw();
  if (raw.type_index == type_index::kBool) return raw.v.v_int != 0 ? "True" : "False";
  if (raw.type_index == type_index::kInt) return fmt::format("{}", raw.v.v_int);
  if (raw.type_index == type_index::kFloat) return real_text(raw.v.v_float);
  if (value.is<std::string>()) return in_quotes(value.as<std::string>());
  if (raw.type_index == type_index::kDataType) return in_quotes(value.as<DataType>().to_string());
  if (const auto* imm = value.as_node<IntImmNode>()) return fmt::format("{}", imm->value);
  if (const auto* array = value.as_node<ArrayObj>()) return list_text(array->items);
  if (raw.type_index != type_index::kShape)
    throw_user_error("a pattern with an attribute that is a {} has no text form", kind_name(raw));
  std::vector<Value> dims;
  for (const int64_t dim : value.as<Shape>()) dims.emplace_back(dim);
  return list_text(dims);
}

std::string attrs_text(const Map<std::string, Value>& attrs) {
  std::string text = "[attrs";
  const char* separator = " ";
  for (const auto& [key, value] : attrs) {
    text += fmt::format("{}{}={}", separator, is_identifier(key) ? key : in_quotes(key), value_text(value));
    separator = ", ";
  }
  return text + "]";
}

std::string shape_text(const Array<PrimExpr>& shape) {
  std::vector<std::string> dims;
  for (const PrimExpr& dim : shape) {
    if (!as_int(dim) && !is_any(dim))
      throw_user_error("a pattern with a shape of {} has no text form: dimensions are numbers or ?", to_string(dim));
    dims.push_back(to_string(dim));
  }
  return fmt::format("[shape ({})]", fmt::join(dims, ", "));
}

std::string expr_text(const Expr& expr) {
  if (const auto* op = expr.as<OpNode>()) {
    const bool is_plain = is_identifier(op->name, true) && !is_pattern_word(op->name);
    return is_plain ? op->name : fmt::format("op({})", in_quotes(op->name));
  }
  std::string text = print_expr(expr);
  text.erase(0, text.find('\n') + 1);  // the line of the version
  while (text.ends_with('\n')) text.pop_back();
  return fmt::format("expr({})", in_quotes(text));
}

class PatternPrinter {
 public:
  explicit PatternPrinter(const DFPattern& pattern)
      : index_(pattern), texts_(index_.nodes.size()), names_(texts_.size()) {
    depths_.resize(texts_.size());
    find_names();
  }

  std::string print() {
    std::vector<int> wildcards;
    write_from(index_.root);
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (!is_redirected(i)) continue;
      wildcards.push_back(static_cast<int>(i));
      write_from(index_.nodes[i].children[0]);
    }
    for (const int wildcard : wildcards) {
      const auto id = static_cast<size_t>(wildcard);
      definitions_ += fmt::format("rec {} = {};\n", names_[id], use_of(index_.nodes[id].children[0]));
    }
    return definitions_ + use_of(index_.root);
  }

 private:
  bool is_redirected(size_t id) const {
    return index_.nodes[id].pattern.is<WildcardPatternNode>() && !index_.nodes[id].children.empty();
  }
  void name(size_t id) {
    if (names_[id].empty()) names_[id] = fmt::format("%{}", num_names_++);
  }

  // Names what is used in several places, and every wildcard that is redirected.
  void find_names() {
    std::vector<int> uses(texts_.size());
    ++uses[static_cast<size_t>(index_.root)];
    for (const PatternIndex::Node& node : index_.nodes) {
      for (const int child : node.children) ++uses[static_cast<size_t>(child)];
    }
    for (size_t i = 0; i < texts_.size(); ++i) {
      if (uses[i] > 1 || is_redirected(i)) name(i);
    }
  }

  // Writes the texts of all nodes below `root`, parts first; what stands behind a redirected wildcard comes later.
  void write_from(int root) {
    std::vector<std::pair<int, size_t>> stack;
    const auto push = [&](int id) {
      const auto at = static_cast<size_t>(id);
      if (!is_redirected(at) && written_.insert(id).second) stack.emplace_back(id, 0);
    };
    push(root);
    while (!stack.empty()) {
      const int id = stack.back().first;
      const std::vector<int>& children = index_.nodes[static_cast<size_t>(id)].children;
      if (stack.back().second < children.size()) {
        push(children[stack.back().second++]);
        continue;
      }
      stack.pop_back();
      write(static_cast<size_t>(id));
    }
  }

  void write(size_t id) {
    int depth = 0;
    for (const int child : index_.nodes[id].children) {
      const auto at = static_cast<size_t>(child);
      if (names_[at].empty()) depth = std::max(depth, depths_[at] + 1);
    }
    std::string text = text_of(index_.nodes[id]);
    if (depth >= kMaxPrintedNesting) name(id);
    if (names_[id].empty()) {
      depths_[id] = depth;
      texts_[id] = std::move(text);
    } else {
      definitions_ += fmt::format("{} = {};\n", names_[id], text);
    }
  }

  // Returns how a node is written where it is used; a text is used once.
  std::string use_of(int child) {
    const auto id = static_cast<size_t>(child);
    return names_[id].empty() ? std::move(texts_[id]) : names_[id];
  }

  std::string list_of(const PatternIndex::Node& node, size_t first, size_t last) {
    std::vector<std::string> items;
    for (size_t i = first; i < last; ++i) items.push_back(use_of(node.children[i]));
    return fmt::format("({})", fmt::join(items, ", "));
  }

  std::string text_of(const PatternIndex::Node& node) {
    const DFPattern& pattern = node.pattern;
    const size_t count = node.children.size();
    if (pattern.is<WildcardPatternNode>()) return "_";
    if (pattern.is<ConstantPatternNode>()) return "const";
    if (const auto* var = pattern.as<VarPatternNode>())
      return var->name.empty() ? "var" : fmt::format("var({})", in_quotes(var->name));
    if (const auto* expr = pattern.as<ExprPatternNode>()) return expr_text(expr->expr);
    if (const auto* call = pattern.as<CallPatternNode>()) {
      const std::string callee = as_primary(node.children[0]);
      return callee + (call->args ? list_of(node, 1, count) : "(*)");
    }
    if (const auto* function = pattern.as<FunctionPatternNode>()) {
      const std::string params = function->params ? list_of(node, 0, count - 1) : "(*)";
      return fmt::format("fn{} {{ {} }}", params, use_of(node.children[count - 1]));
    }
    if (const auto* tuple = pattern.as<TuplePatternNode>())
      return "tuple" + (tuple->items ? list_of(node, 0, count) : "(*)");
    if (const auto* item = pattern.as<TupleGetItemPatternNode>()) {
      const std::string index = item->index == -1 ? "" : fmt::format(", {}", item->index);
      return fmt::format("item({}{})", use_of(node.children[0]), index);
    }
    if (pattern.is<AltPatternNode>())
      return fmt::format("({} or {})", use_of(node.children[0]), use_of(node.children[1]));
    if (pattern.is<LetPatternNode>()) return "let" + list_of(node, 0, count);
    if (pattern.is<IfPatternNode>()) return "if" + list_of(node, 0, count);
    if (pattern.is<DominatorPatternNode>()) return "dominates" + list_of(node, 0, count);
    return as_primary(node.children[0]) + constraint_of(pattern);
  }

  // Returns a child's text as what a list or a constraint may follow.
  std::string as_primary(int child) { return use_of(child); }

  static std::string constraint_of(const DFPattern& pattern) {
    if (const auto* typed = pattern.as<TypePatternNode>())
      return fmt::format("[type {}]", in_quotes(type_text(typed->type)));
    if (const auto* typed = pattern.as<DataTypePatternNode>())
      return fmt::format("[dtype {}]", typed->dtype.to_string());
    if (const auto* shaped = pattern.as<ShapePatternNode>()) return shape_text(shaped->shape);
    return attrs_text(pattern.as<AttrPatternNode>()->attrs);
  }

  PatternIndex index_;
  std::vector<std::string> texts_, names_;
  std::vector<int> depths_;
  std::unordered_set<int> written_;
  std::string definitions_;
  int num_names_ = 0;
};

}  // namespace

std::string print_pattern(const DFPattern& pattern) { return PatternPrinter(pattern).print(); }

}  // namespace headrace::relay
