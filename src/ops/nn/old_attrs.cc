// Attributes that pools and convolutions of several ranks shared, before each rank had a type of its own: read from
// JSON as the op's type. An empty layout, or one value of 1 or 0 for all axes, was their default.
#include "object/json.h"
#include "ops/families.h"
#include "relay/expr.h"

namespace headrace::ops {

namespace {

constexpr std::string_view kKeys[] = {"relay.attrs.MaxPoolAttrs", "relay.attrs.AvgPoolAttrs",
                                      "relay.attrs.AdaptivePoolAttrs", "relay.attrs.ConvNDAttrs"};

// Saved attributes, until the call that has them is read.
struct OldAttrsNode : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.OldAttrs";
  static constexpr int32_t child_slots = 4;
  static constexpr StructuralKind structural_kind = StructuralKind::unique;
  explicit OldAttrsNode(NamedValues saved) : saved(std::move(saved)) {}
  NamedValues saved;
};

template <size_t i>
struct OldAttrsOf : OldAttrsNode {
  using Parent = OldAttrsNode;
  static constexpr std::string_view type_key = kKeys[i];
  static constexpr bool is_final = true;
  using OldAttrsNode::OldAttrsNode;
  static NamedValues save_content(const OldAttrsOf& node) { return node.saved; }
  static Ref<OldAttrsOf> load_content(const NamedValues& saved) { return make_object<OldAttrsOf>(saved); }
};

bool was_default(const std::string& name, const Value& value) {
  if (value.is<std::string>()) return value.as<std::string>().empty();
  if (value.type_index() != type_index::kShape) return false;
  const Shape shape = value.as<Shape>();
  if (name == "strides" || name == "dilation") return shape == Shape{1};
  return (name == "padding" || name == "output_padding") && shape == Shape{0};
}

void upgrade_call(NamedValues& call) {
  const OpNode* op = nullptr;
  Value* attrs = nullptr;
  for (auto& [name, value] : call) {
    if (name == "op") op = value.as_node<OpNode>();
    if (name == "attrs") attrs = &value;
  }
  const auto* old = attrs == nullptr ? nullptr : attrs->as_node<OldAttrsNode>();
  if (old == nullptr || op == nullptr || op->attrs_type_key.empty()) return;
  NamedValues fields;
  for (const auto& [name, value] : old->saved) {
    if (!was_default(name, value)) fields.emplace_back(name, value);
  }
  *attrs = Value(make_node(op->attrs_type_key, fields));
}

}  // namespace

void register_old_attrs() {
  static_cast<void>(type_of<OldAttrsOf<0>>()), static_cast<void>(type_of<OldAttrsOf<1>>()),
      static_cast<void>(type_of<OldAttrsOf<2>>()), static_cast<void>(type_of<OldAttrsOf<3>>());
  set_json_upgrade(std::string(relay::CallNode::type_key), upgrade_call);
}

}  // namespace headrace::ops
