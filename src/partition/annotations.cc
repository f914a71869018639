#include "partition/annotations.h"

#include <algorithm>
#include <map>

#include "ops/op_handles.h"
#include "ops/tensor/compiler_annotation.h"
#include "partition/flow_reader.h"
#include "relay/children.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/scopes.h"

namespace headrace::partition {

using relay::CallNode;

namespace {

bool is_begin(const CallNode& call) { return relay::is_call(call, op::kCompilerBegin); }
bool is_end(const CallNode& call) { return relay::is_call(call, op::kCompilerEnd); }

// Returns the node as an annotation; null for any other.
const CallNode* annotation_of(const ExprNode& node) {
  if (!node.is_instance<CallNode>()) return nullptr;
  const auto& call = static_cast<const CallNode&>(node);
  return is_begin(call) || is_end(call) ? &call : nullptr;
}

const CallNode* begin_of(const ExprNode& node) {
  const CallNode* annotation = annotation_of(node);
  return annotation != nullptr && is_begin(*annotation) ? annotation : nullptr;
}

const CallNode* end_of(const ExprNode& node) {
  const CallNode* annotation = annotation_of(node);
  return annotation != nullptr && is_end(*annotation) ? annotation : nullptr;
}

const std::string& compiler_of(const CallNode& annotation) {
  return annotation.attrs_as<ops::CompilerAttrs>().compiler;
}

[[noreturn]] void fail_at(const CallNode& annotation, const std::string& what) {
  throw_at(annotation.span, annotation.as_op()->name, what);
}

// How it works: a computation is inside of a part when a compiler_end closes it, or when it hands its value without an
// annotation to one that is inside. Computations inside that hand each other values are one part.
class AnnotationReader {
 public:
  // The body outlives the reader.
  explicit AnnotationReader(const Expr& body) {
    flow_ = FlowReader(body, *this).take();
    outside(*body);
    find_parts();
    for (int32_t i = 0; i < flow_.num_nodes(); ++i) {
      if (at(i).is_inside) check(i);
    }
  }

  bool is_annotated() const { return is_annotated_; }

  Annotated take() {
    std::vector<int32_t> part(nodes_.size(), kNone);
    std::vector<std::string> compiler;
    std::vector<int32_t> first_number(nodes_.size(), kNone);  // per part, its number in one of its scopes
    std::vector<int32_t> scope_of_number;
    std::map<std::pair<int32_t, int32_t>, int32_t> more_numbers;  // by part and other scope
    for (int32_t i = 0; i < flow_.num_nodes(); ++i) {
      if (!at(i).is_inside) continue;
      const int32_t named = find(i), scope = flow_.scope[static_cast<size_t>(i)];
      int32_t* number = &first_number[static_cast<size_t>(named)];
      if (*number != kNone && scope_of_number[static_cast<size_t>(*number)] != scope)
        number = &more_numbers.try_emplace({named, scope}, kNone).first->second;
      if (*number == kNone) {
        *number = static_cast<int32_t>(compiler.size());
        compiler.push_back(compiler_of(*parts_[static_cast<size_t>(named)].end));
        scope_of_number.push_back(scope);
      }
      part[static_cast<size_t>(i)] = *number;
    }
    return {std::move(flow_), std::move(part), std::move(compiler)};
  }

  // For FlowReader. Around a value stands at most an end inside of a begin.
  const ExprNode* value_of(const ExprNode* written) {
    const CallNode* outer = nullptr;
    while (const CallNode* annotation = annotation_of(*written)) {
      is_annotated_ = true;
      if (outer != nullptr && is_begin(*annotation)) fail_at(*annotation, "it opens a part that has no computation");
      if (outer != nullptr && is_end(*outer)) fail_at(*outer, "it closes a part that is closed already");
      outer = annotation;
      written = annotation->args[0].get();
    }
    return written;
  }

  void handed(const FlowChild& child) {
    if (child.written == child.value) return;
    const CallNode* outer = annotation_of(*child.written);
    const CallNode* end = is_end(*outer) ? outer : end_of(*outer->args[0]);
    if (end == nullptr) return;
    if (child.node != kNone && at(child.node).is_computation) {
      add_end(at(child.node), *end);
    } else if (compiler_of(*end) != kDefaultCompiler) {
      fail_at(*end, "it closes a part that has no computation");
    }
  }

  void left(const Expr& node, const ExprNode& written, std::span<const FlowChild> children) {
    nodes_.push_back({.written = &written,
                      .parent = static_cast<int32_t>(nodes_.size()),
                      .is_computation = is_computation(node),
                      .first_operand = operands_.size(),
                      .first_begin = begins_.size()});
    if (!nodes_.back().is_computation) {
      for (const FlowChild& child : children) outside(*child.written);
      return;
    }
    for (const FlowChild& child : children.subspan(node.is<CallNode>() ? 1 : 0)) {  // not what is called
      if (const CallNode* begin = begin_of(*child.written)) {
        begins_.push_back(begin);
      } else if (child.written == child.value && child.node != kNone && at(child.node).is_computation) {
        operands_.push_back(child.node);
      }
    }
  }

 private:
  static constexpr size_t kNoEnd = ~size_t{0};
  // A node of the flow. The lists below hold what it takes, one node after another.
  struct Node {
    const ExprNode* written;
    int32_t parent;  // links the sets of nodes that are one part
    bool is_computation;
    bool is_inside = false;
    size_t first_operand = 0, first_begin = 0;
    size_t first_end = kNoEnd, last_end = kNoEnd;
  };
  struct Part {
    const CallNode* begin = nullptr;
    const CallNode* end = nullptr;
    const CallNode* first() const { return begin != nullptr ? begin : end; }
  };
  struct End {
    const CallNode* annotation;
    size_t next = kNoEnd;  // next end at the same node
  };

  Node& at(int32_t i) { return nodes_[static_cast<size_t>(i)]; }

  int32_t find(int32_t i) {
    while (at(i).parent != i) i = at(i).parent = at(at(i).parent).parent;
    return i;
  }

  // Several users may take one end.
  void add_end(Node& node, const CallNode& annotation) {
    if (node.is_inside && ends_[node.last_end].annotation == &annotation) return;
    node.is_inside = true;
    (node.first_end == kNoEnd ? node.first_end : ends_[node.last_end].next) = ends_.size();
    node.last_end = ends_.size();
    ends_.push_back({&annotation});
  }

  // A value that goes to a binder, a branch or the result needs no compiler_begin.
  static void outside(const ExprNode& value) {
    if (const CallNode* begin = begin_of(value); begin != nullptr && compiler_of(*begin) != kDefaultCompiler)
      fail_at(*begin, "it opens a part that has no computation");
  }

  void find_parts() {
    size_t operands_end = operands_.size();
    for (size_t i = nodes_.size(); i-- > 0;) {  // users first
      const Node& node = nodes_[i];
      for (size_t k = node.first_operand; k < operands_end && node.is_inside; ++k) {
        at(operands_[k]).is_inside = true;
        at(find(operands_[k])).parent = find(static_cast<int32_t>(i));
      }
      operands_end = node.first_operand;
    }
    add_annotations();
  }

  // Gives each part its annotations, in the order of its nodes and of what they take.
  void add_annotations() {
    parts_.resize(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const size_t begins_end = i + 1 < nodes_.size() ? nodes_[i + 1].first_begin : begins_.size();
      for (size_t k = nodes_[i].first_begin; k < begins_end; ++k) add_begin(static_cast<int32_t>(i), *begins_[k]);
      for (size_t k = nodes_[i].first_end; k != kNoEnd; k = ends_[k].next)
        add(parts_[static_cast<size_t>(find(static_cast<int32_t>(i)))], *ends_[k].annotation);
    }
  }

  void add_begin(int32_t node, const CallNode& begin) {
    if (at(node).is_inside) return add(parts_[static_cast<size_t>(find(node))], begin);
    if (compiler_of(begin) != kDefaultCompiler)
      fail_at(begin, fmt::format("no compiler_end closes the part that it opens for '{}'; put one around each result "
                                 "of the part",
                                 compiler_of(begin)));
  }

  static void add(Part& part, const CallNode& annotation) {
    if (part.first() != nullptr && compiler_of(*part.first()) != compiler_of(annotation))
      fail_at(annotation, fmt::format("the part is annotated for '{}' and for '{}'; one compiler computes a part",
                                      compiler_of(*part.first()), compiler_of(annotation)));
    const CallNode*& kept = relay::is_call(annotation, op::kCompilerEnd) ? part.end : part.begin;
    if (kept == nullptr) kept = &annotation;
  }

  void check(int32_t node) {
    const Part& part = parts_[static_cast<size_t>(find(node))];
    if (compiler_of(*part.end) == kDefaultCompiler) return;
    if (const std::string fault = region_fault(flow_.node(node)); !fault.empty()) fail_at(*part.first(), fault);
    if (part.begin == nullptr && takes_input(node))
      fail_at(*part.end, fmt::format("no compiler_begin opens the part that it closes for '{}'; put one around each "
                                     "input of the part",
                                     compiler_of(*part.end)));
  }

  // Returns whether a computation takes a variable or what another part gives.
  bool takes_input(int32_t node) {
    bool takes = false, is_callee = flow_.node(node).is<CallNode>();
    relay::for_each_child(*at(node).written, [&](const ExprNode* child) {
      if (!std::exchange(is_callee, false))
        takes |= child->is_instance<relay::VarNode>() || annotation_of(*child) != nullptr;
    });
    return takes;
  }

  Flow flow_;
  std::vector<Node> nodes_;              // one for each node of the flow
  std::vector<int32_t> operands_;        // the computations whose values nodes take without an annotation
  std::vector<const CallNode*> begins_;  // the annotations of other values that nodes take
  std::vector<End> ends_;                // ends of the values that nodes give
  std::vector<Part> parts_;              // by the node that names the part
  bool is_annotated_ = false;
};

class AnnotationWriter {
 public:
  AnnotationWriter(const Flow& flow, const std::vector<int32_t>& part, const std::vector<std::string>& compiler)
      : flow_(flow), part_(part) {
    // Annotations of one compiler share their attributes.
    std::unordered_map<std::string_view, Attrs> known;
    for (const std::string& name : compiler) {
      Attrs& attrs = known[name];
      if (!attrs) attrs = ops::compiler_attrs(name);
      attrs_.push_back(attrs);
    }
    written_.reserve(flow.nodes.size());
  }

  Expr write() {
    for (int32_t i = 0; i < flow_.num_nodes(); ++i) write_node(i);
    return handed(flow_.body, flow_.find(flow_.body), kNone);
  }

 private:
  void write_node(int32_t i) {
    const Expr& node = flow_.node(i);
    const std::span<const int32_t> from = flow_.children_of(i);
    if (from.empty()) return written_.push_back(node);
    const bool has_callee = node.is<CallNode>();
    children_.clear();
    relay::for_each_child(*node, [&](const ExprNode* child) {
      const size_t k = children_.size();
      children_.push_back(k == 0 && has_callee ? plain(ref(child), from[k]) : handed(ref(child), from[k], part(i)));
    });
    written_.push_back(retyped(node, relay::with_children(node, children_)));
  }

  int32_t part(int32_t node) const { return node == kNone ? kNone : part_[static_cast<size_t>(node)]; }

  // The value, which is that of a node of the flow or of none, in the new body.
  Expr plain(const Expr& value, int32_t node) const {
    return node == kNone ? value : written_[static_cast<size_t>(node)];
  }

  // The value as a node of the part `to` takes it. Each edge has annotations of its own.
  Expr handed(const Expr& value, int32_t node, int32_t to) const {
    const int32_t from = part(node);
    Expr result = plain(value, node);
    if (from == to || value.is<OpNode>()) return result;
    if (from != kNone) result = annotated(op::kCompilerEnd, result, from, value);
    if (to != kNone) result = annotated(op::kCompilerBegin, result, to, value);
    return result;
  }

  Expr annotated(const OpHandle& op, const Expr& value, int32_t part, const Expr& original) const {
    const Attrs& attrs = attrs_[static_cast<size_t>(part)];
    return retyped(original, relay::make_call(Expr(headrace::ref(&op.node())), {value}, attrs, {}, original->span));
  }

  const Flow& flow_;
  const std::vector<int32_t>& part_;
  std::vector<Attrs> attrs_;  // by part
  std::vector<Expr> written_;
  std::vector<Expr> children_;
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
