#include "partition/annotations.h"

#include <map>

#include "ops/op_handles.h"
#include "ops/tensor/compiler_annotation.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

const CallNode* begin_of(const Expr& expr) { return relay::call_of(expr, op::kCompilerBegin); }
const CallNode* end_of(const Expr& expr) { return relay::call_of(expr, op::kCompilerEnd); }
bool is_annotation(const Expr& expr) { return begin_of(expr) != nullptr || end_of(expr) != nullptr; }
const std::string& compiler_of(const CallNode& annotation) {
  return annotation.attrs_as<ops::CompilerAttrs>().compiler;
}

[[noreturn]] void fail_at(const CallNode& annotation, const std::string& what) {
  throw_at(annotation.span, annotation.as_op()->name, what);
}

// Returns the values that a computation takes; without what it calls.
std::vector<Expr> operands_of(const Expr& expr) {
  std::vector<Expr> children = relay::children_of(expr);
  if (expr.is<CallNode>()) children.erase(children.begin());
  return children;
}

// How it works: a computation is inside of a part when a compiler_end closes it, or when it hands its value without an
// annotation to one that is inside. Computations inside that hand each other values are one part.
class AnnotationReader {
 public:
  explicit AnnotationReader(const Expr& body) {
    read_and_strip(body);
    outside(body);
    find_parts();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].is_inside) check(static_cast<int32_t>(i));
    }
  }

  bool is_annotated() const { return is_annotated_; }

  Annotated take() {
    Annotated result{make_flow(body_), {}, {}};
    std::map<std::pair<int32_t, int32_t>, int32_t> numbers;
    for (size_t i = 0; i < result.flow.nodes.size(); ++i) {
      const auto origin = origin_.find(result.flow.nodes[i].object());
      if (origin == origin_.end() || !at(origin->second).is_inside) {
        result.part.push_back(kNone);
        continue;
      }
      const int32_t part = find(origin->second);
      const auto [known, is_new] =
          numbers.try_emplace({part, result.flow.scope[i]}, static_cast<int32_t>(numbers.size()));
      if (is_new) result.compiler.push_back(compiler_of(*parts_.at(part).end));
      result.part.push_back(known->second);
    }
    return result;
  }

 private:
  struct Node {
    Expr expr;
    int32_t parent;  // of the sets of nodes that are one part
    bool is_inside = false;
    std::vector<int32_t> operands = {};  // the computations whose values it takes without an annotation
    std::vector<const CallNode*> begins = {}, ends = {};
  };
  struct Part {
    const CallNode* begin = nullptr;
    const CallNode* end = nullptr;
    const CallNode* first() const { return begin != nullptr ? begin : end; }
  };

  Node& at(int32_t i) { return nodes_[static_cast<size_t>(i)]; }

  int32_t number(const Expr& expr) {
    const auto [it, is_new] = index_.try_emplace(expr.object(), static_cast<int32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({expr, it->second});
    return it->second;
  }
  int32_t find(int32_t i) {
    while (at(i).parent != i) i = at(i).parent = at(at(i).parent).parent;
    return i;
  }

  void read(const Expr& expr) {
    if (is_annotation(expr)) return read_annotation(*expr.as<CallNode>());
    if (!is_computation(expr)) {
      if (relay::is_atomic(expr)) return;
      for (const Expr& child : relay::children_of(expr)) outside(child);
      return;
    }
    const int32_t node = number(expr);
    for (const Expr& operand : operands_of(expr)) {
      if (const CallNode* begin = begin_of(operand)) {
        at(node).begins.push_back(begin);
      } else if (is_computation(operand) && end_of(operand) == nullptr) {
        const int32_t from = number(operand);
        at(node).operands.push_back(from);
      }
    }
  }

  void read_annotation(const CallNode& annotation) {
    const Expr& value = annotation.args[0];
    is_annotated_ = true;
    if (begin_of(value) != nullptr) fail_at(*begin_of(value), "it opens a part that has no computation");
    if (!relay::is_call(annotation, op::kCompilerEnd)) return;
    if (end_of(value) != nullptr) fail_at(annotation, "it closes a part that is closed already");
    if (is_computation(value)) {
      const int32_t node = number(value);
      at(node).ends.push_back(&annotation);
    } else if (compiler_of(annotation) != kDefaultCompiler) {
      fail_at(annotation, "it closes a part that has no computation");
    }
  }

  // A value that goes to a binder, a branch or the result needs no compiler_begin.
  static void outside(const Expr& value) {
    if (const CallNode* begin = begin_of(value); begin != nullptr && compiler_of(*begin) != kDefaultCompiler)
      fail_at(*begin, "it opens a part that has no computation");
  }

  void find_parts() {
    for (size_t i = nodes_.size(); i-- > 0;) {  // users first
      Node& node = nodes_[i];
      node.is_inside = node.is_inside || !node.ends.empty();
      for (const int32_t operand : node.operands) {
        if (!node.is_inside) break;
        at(operand).is_inside = true;
        at(find(operand)).parent = find(static_cast<int32_t>(i));
      }
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
      for (const CallNode* begin : nodes_[i].begins) {
        if (nodes_[i].is_inside) {
          add(parts_[find(static_cast<int32_t>(i))], *begin);
        } else if (compiler_of(*begin) != kDefaultCompiler) {
          fail_at(*begin,
                  fmt::format("no compiler_end closes the part that it opens for '{}'; put one around each result "
                              "of the part",
                              compiler_of(*begin)));
        }
      }
      for (const CallNode* end : nodes_[i].ends) add(parts_[find(static_cast<int32_t>(i))], *end);
    }
  }

  static void add(Part& part, const CallNode& annotation) {
    if (part.first() != nullptr && compiler_of(*part.first()) != compiler_of(annotation))
      fail_at(annotation, fmt::format("the part is annotated for '{}' and for '{}'; one compiler computes a part",
                                      compiler_of(*part.first()), compiler_of(annotation)));
    const CallNode*& kept = relay::is_call(annotation, op::kCompilerEnd) ? part.end : part.begin;
    if (kept == nullptr) kept = &annotation;
  }

  void check(int32_t node) {
    const Part& part = parts_.at(find(node));
    if (compiler_of(*part.end) == kDefaultCompiler) return;
    const Expr& expr = at(node).expr;
    if (const std::string fault = region_fault(expr); !fault.empty()) fail_at(*part.first(), fault);
    if (part.begin != nullptr) return;
    for (const Expr& operand : operands_of(expr)) {
      const bool is_input = is_computation(operand) ? is_annotation(operand) : operand.is<relay::VarNode>();
      if (is_input)
        fail_at(*part.end, fmt::format("no compiler_begin opens the part that it closes for '{}'; put one around each "
                                       "input of the part",
                                       compiler_of(*part.end)));
    }
  }

  void read_and_strip(const Expr& body) {
    body_ = relay::rewrite_post_order(
        body, [](const Expr& expr) { return relay::is_entered(expr); },
        [&](const Expr& before, const Expr& after) {
          read(before);
          if (is_annotation(before)) return after.as<CallNode>()->args[0];
          const auto known = index_.find(before.object());
          if (known != index_.end()) origin_.emplace(after.object(), known->second);
          return retyped(before, after);
        });
  }

  std::unordered_map<const Object*, int32_t> index_;  // of the computations
  std::vector<Node> nodes_;                           // each after those whose values it takes
  std::map<int32_t, Part> parts_;
  std::unordered_map<const Object*, int32_t> origin_;  // the computations that the nodes without annotations were
  Expr body_;
  bool is_annotated_ = false;
};

class AnnotationWriter {
 public:
  AnnotationWriter(const Flow& flow, const std::vector<int32_t>& part, const std::vector<std::string>& compiler)
      : flow_(flow), part_(part), compiler_(compiler) {}

  Expr write() {
    for (int32_t i = 0; i < flow_.num_nodes(); ++i) {
      const Expr& node = flow_.node(i);
      if (!relay::is_entered(node)) {
        written_.push_back(node);
        continue;
      }
      std::vector<Expr> children = relay::children_of(node);
      const size_t first = node.is<CallNode>() ? 1 : 0;
      if (first == 1) children[0] = plain(children[0]);
      for (size_t k = first; k < children.size(); ++k) children[k] = handed(children[k], part(i));
      written_.push_back(retyped(node, relay::with_children(node, children)));
    }
    return handed(flow_.body, kNone);
  }

 private:
  int32_t part(int32_t node) const { return node == kNone ? kNone : part_[static_cast<size_t>(node)]; }

  Expr plain(const Expr& expr) const {
    const int32_t node = flow_.find(expr);
    return node == kNone ? expr : written_[static_cast<size_t>(node)];
  }

  // The value as a node of the part `to` takes it. Each edge has annotations of its own.
  Expr handed(const Expr& value, int32_t to) {
    const int32_t from = part(flow_.find(value));
    Expr result = plain(value);
    if (from == to || value.is<OpNode>()) return result;
    if (from != kNone) result = annotated(op::kCompilerEnd, result, from, value);
    if (to != kNone) result = annotated(op::kCompilerBegin, result, to, value);
    return result;
  }

  // Annotations of one compiler share their attributes.
  Expr annotated(const OpHandle& op, const Expr& value, int32_t part, const Expr& original) {
    Attrs& attrs = attrs_[compiler_[static_cast<size_t>(part)]];
    if (!attrs) attrs = ops::compiler_attrs(compiler_[static_cast<size_t>(part)]);
    return retyped(original, relay::make_call(Expr(headrace::ref(&op.node())), {value}, attrs, {}, original->span));
  }

  const Flow& flow_;
  const std::vector<int32_t>& part_;
  const std::vector<std::string>& compiler_;
  std::unordered_map<std::string, Attrs> attrs_;  // by compiler
  std::vector<Expr> written_;
};

}  // namespace

std::optional<Annotated> find_annotations(const Expr& body) {
  AnnotationReader reader(body);
  return reader.is_annotated() ? std::optional(reader.take()) : std::nullopt;
}

Annotated read_annotations(const Expr& body) { return AnnotationReader(body).take(); }

Expr write_annotations(const Flow& flow, const std::vector<int32_t>& part, const std::vector<std::string>& compiler) {
  return AnnotationWriter(flow, part, compiler).write();
}

}  // namespace headrace::partition
