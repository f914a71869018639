// FlowReader: walks a body and makes its Flow. make_flow() reads plain bodies by it, read_annotations() bodies with
// annotations, which it looks through, so that one walk reads them and removes them.
#pragma once

#include "partition/flow.h"
#include "relay/children.h"
#include "relay/function_attrs.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::partition {

// A child of a node.
struct FlowChild {
  const ExprNode* written;  // as the body has it
  const ExprNode* value;    // without what the source looks through
  int32_t node = kNone;     // known when its user has it
};

// Walks as relay::post_order does, without recursion, and notes each value when its user has it. The source says what
// stands for another value, and is told what the walk meets:
//   const ExprNode* value_of(const ExprNode* written): the value of a child, which is the child itself or one inside it
//   void handed(const FlowChild& child): a node takes the child; once for each use
//   void left(const Expr& node, const ExprNode& written, std::span<const FlowChild> children): the flow has a new node
template <typename Source>
class FlowReader {
 public:
  FlowReader(const Expr& body, Source& source) : source_(source) {
    FlowChild result{body.get(), source.value_of(body.get())};
    push(result.value);
    walk();
    flow_.child_begins.push_back(flow_.children.size());
    for (Flow::Use& use : flow_.uses) use.to = node_of_frame_[static_cast<size_t>(use.to)];
    hand(result);
    flow_.body = now(result);
    flow_.uses.push_back({flow_.body, result.node, kNone});
    index_nodes();
    find_scopes();
  }

  Flow take() { return std::move(flow_); }

 private:
  struct Frame {
    const ExprNode* written;
    int32_t number;      // number of the frame, as its node has none yet
    size_t begin, next;  // its children stand in children_ from `begin` on
  };

  // A node that is met has the number kNone until it is left.
  void push(const ExprNode* node) {
    if (relay::is_atomic(*node) || !numbers_.try_emplace(node, kNone).second) return;
    const size_t begin = children_.size();
    stack_.push_back({node, static_cast<int32_t>(node_of_frame_.size()), begin, begin});
    node_of_frame_.push_back(kNone);
    if (!relay::is_entered(ref(node))) return;
    relay::for_each_child(*node, [&](const ExprNode* child) {
      HEADRACE_CHECK(child != nullptr, "an expression has a null child");
      children_.push_back({child, source_.value_of(child)});
    });
  }

  // The frame of a user is on top again after each child, and once more where the child was known.
  void walk() {
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.next > top.begin) {
        FlowChild& child = children_[top.next - 1];
        hand(child);
        flow_.uses.push_back({now(child), child.node, top.number});
      }
      if (top.next < children_.size()) {
        push(children_[top.next++].value);  // may move the stack, and `top` with it
        continue;
      }
      leave(top);
      stack_.pop_back();
    }
  }

  void hand(FlowChild& child) {
    const int32_t* node = numbers_.find(child.value);
    child.node = node == nullptr ? kNone : *node;
    source_.handed(child);
  }

  // The child as the flow has it.
  Expr now(const FlowChild& child) const { return child.node == kNone ? ref(child.value) : flow_.node(child.node); }

  void leave(const Frame& frame) {
    const auto children = std::span<const FlowChild>(children_).subspan(frame.begin);
    node_of_frame_[static_cast<size_t>(frame.number)] = flow_.num_nodes();
    *numbers_.find(frame.written) = flow_.num_nodes();
    flow_.nodes.push_back(rebuilt(frame.written, children));
    flow_.child_begins.push_back(flow_.children.size());
    for (const FlowChild& child : children) flow_.children.push_back(child.node);
    source_.left(flow_.nodes.back(), *frame.written, children);
    children_.resize(frame.begin, FlowChild{nullptr, nullptr});
  }

  // The node with its children as the flow has them.
  Expr rebuilt(const ExprNode* written, std::span<const FlowChild> children) {
    const auto is_kept = [&](const FlowChild& child) {
      return child.written == (child.node == kNone ? child.value : flow_.node(child.node).get());
    };
    Expr node = ref(written);
    if (std::all_of(children.begin(), children.end(), is_kept)) return node;
    is_rebuilt_ = true;
    rebuilt_.clear();
    for (const FlowChild& child : children) rebuilt_.push_back(now(child));
    return retyped(node, relay::with_children(node, rebuilt_));
  }

  void index_nodes() {
    if (!is_rebuilt_) {
      flow_.index = std::move(numbers_);
      return;
    }
    flow_.index.reserve(flow_.nodes.size());
    for (int32_t i = 0; i < flow_.num_nodes(); ++i) flow_.index.try_emplace(flow_.node(i).object(), i);
  }

  // Most bodies have one scope, which needs no search.
  void find_scopes() {
    const auto opens_scope = [](const Expr& node) {
      return node.is<relay::LetNode>() || node.is<relay::IfNode>() || node.is<relay::MatchNode>() ||
             node.is<relay::FunctionNode>();
    };
    flow_.scope.assign(flow_.nodes.size(), 0);
    if (std::none_of(flow_.nodes.begin(), flow_.nodes.end(), opens_scope)) return;
    const relay::Scopes scopes = relay::find_scopes(flow_.body);
    for (size_t i = 0; i < flow_.nodes.size(); ++i) flow_.scope[i] = scopes.at(flow_.nodes[i]).scope;
  }

  Source& source_;
  Flow flow_;
  bool is_rebuilt_ = false;
  ObjectMap<int32_t> numbers_;  // the node of each expression as written
  std::vector<Frame> stack_;
  std::vector<FlowChild> children_;  // children of the frames on the stack, one frame after another
  std::vector<int32_t> node_of_frame_;
  std::vector<Expr> rebuilt_;
};

}  // namespace headrace::partition
