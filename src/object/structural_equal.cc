#include "object/structural_equal.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "object/array.h"
#include "object/hash.h"
#include "object/map.h"
#include "object/repr.h"
#include "object/string.h"
#include "object/structural_fields.h"

namespace headrace {

namespace {

using detail::DefMode;

// Two values to compare, and the step that leads to them from the node they are parts of.
struct Pair {
  Value a, b;
  DefMode mode;
  const FieldInfo* field = nullptr;  // the step: a field,
  int64_t index = -1;                // an array's item,
  Value key = {};                    // or a map's entry
  bool is_key = false;               // the entry's key, not its value
};

// The partner of a variable of the left side. Each binding has a serial number; 0: it holds for the whole comparison.
struct Binding {
  Value partner;
  uint64_t serial = 0;
};

// The bindings that a comparison looked up: while they stand, it comes out the same.
struct Uses {
  static constexpr size_t kMost = 16;
  std::vector<std::pair<const Object*, uint64_t>> bindings;  // by serial
  bool more = false;                                         // than are listed

  void add(const Object* variable, uint64_t serial) {
    const auto at = std::lower_bound(bindings.begin(), bindings.end(), serial,
                                     [](const auto& use, uint64_t s) { return use.second < s; });
    if (at != bindings.end() && at->second == serial) return;
    if (bindings.size() == kMost) {
      more = true;
    } else {
      bindings.emplace(at, variable, serial);
    }
  }
  void add(const Uses& other) {
    for (const auto& [variable, serial] : other.bindings) add(variable, serial);
    more |= other.more;
  }
  // Drops bindings younger than `serial`, which were made inside.
  void drop_after(uint64_t serial) {
    while (!bindings.empty() && bindings.back().second > serial) bindings.pop_back();
  }
};

// Bindings that another one hides, for as long as the node that binds anew is compared.
struct Hidden {
  Value left, right;  // bound to each other meanwhile
  Binding of_left;    // the old partners, if any
  Value right_owner;
  Binding of_right_owner;
};

// Two nodes whose parts are being compared.
struct Frame {
  Pair pair;
  std::vector<Pair> parts;
  size_t next = 0;
  uint64_t start = 0;  // the last binding before
  uint64_t scope = 0;  // the set of bindings before it
  Uses uses = {};
  std::vector<Hidden> hidden = {};
};

// A pair of nodes that were found equal, in the scope, with the bindings.
struct Proven {
  Value a, b;  // kept alive
  Uses uses;
  uint64_t scope;
};

struct PairHash {
  size_t operator()(const std::pair<const Object*, const Object*>& p) const {
    return static_cast<size_t>(
        hash_combine(reinterpret_cast<uintptr_t>(p.first), reinterpret_cast<uintptr_t>(p.second)));
  }
};

using Entry = std::pair<Value, Value>;

// The entries of the right map that have a partner, and those that may still become one, by their keys' hashes.
class Partners {
 public:
  explicit Partners(const MapObj& map) : map_(map) {}
  bool taken(const Entry* entry) const { return taken_.contains(entry); }
  bool take(const Entry* entry) { return taken_.insert(entry).second; }

  const Entry* next_of(uint64_t key_hash) {
    if (by_hash_.empty()) {
      for (const Entry& entry : map_.items)
        by_hash_[detail::key_hash_alone(entry.first, {.map_free_vars = true})].entries.push_back(&entry);
    }
    auto it = by_hash_.find(key_hash);
    if (it == by_hash_.end()) return nullptr;
    auto& [entries, next] = it->second;
    while (next < entries.size() && taken(entries[next])) ++next;
    return next < entries.size() ? entries[next] : nullptr;
  }

 private:
  struct Group {
    std::vector<const Entry*> entries;
    size_t next = 0;
  };
  const MapObj& map_;
  std::unordered_set<const Entry*> taken_;
  std::unordered_map<uint64_t, Group> by_hash_;
};

class Comparer {
 public:
  explicit Comparer(StructuralOptions options) : options_(options) {}

  bool run(const Value& a, const Value& b) {
    if (a.is_object() && a.object() == b.object()) return true;
    if (!enter({a, b, DefMode::use})) return false;
    while (!stack_.empty()) {
      Frame& frame = stack_.back();
      if (frame.next == frame.parts.size()) {
        leave();
      } else if (!enter(frame.parts[frame.next++])) {
        return false;
      }
    }
    return true;
  }
  Mismatch mismatch() const;

 private:
  bool fail(const Pair& pair, std::string reason) {
    failed_ = pair;
    reason_ = std::move(reason);
    return false;
  }

  // Compares at once, or puts a frame on the stack. By value: the stack may move.
  bool enter(Pair pair) {
    const RawValue &a = pair.a.raw(), &b = pair.b.raw();
    if (detail::is_leaf(a) || detail::is_leaf(b)) return compare_leaves(pair);
    if (a.type_index != b.type_index) return fail(pair, "types differ");
    const Object *left = a.v.v_object, *right = b.v.v_object;
    switch (detail::kind_of(left->type_info())) {
      case StructuralKind::unique:
        return left == right || fail(pair, "equal only to itself");
      case StructuralKind::constant:
        return left == right || push_unless_proven(std::move(pair));
      case StructuralKind::tree:
        return push_unless_proven(std::move(pair));
      case StructuralKind::dag:
        if (detail::is_empty_list(left)) return push_unless_proven(std::move(pair));
        if (const Met met = meet(left, right); met != Met::neither) {
          if (!stack_.empty()) stack_.back().uses.more = true;  // the bindings it looked up are unknown now
          return met == Met::together || fail(pair, "sharing differs: one side was met before, elsewhere");
        }
        return push(std::move(pair));
      case StructuralKind::var:
        return enter_var(std::move(pair));
    }
    return fail(pair, "a node of no known kind");
  }

  bool compare_leaves(const Pair& pair) {
    const RawValue &a = pair.a.raw(), &b = pair.b.raw();
    if (detail::is_leaf(a) && detail::is_leaf(b) && detail::leaf_equal(a, b)) return true;
    return fail(pair, kind_name(a) == kind_name(b) ? "values differ" : "types differ");
  }

  bool enter_var(Pair pair) {
    const Object *left = pair.a.object(), *right = pair.b.object();
    if (binds_anew(pair)) return push(std::move(pair));
    if (const Met met = meet(left, right); met != Met::neither) {
      note_use(left);
      return met == Met::together || fail(pair, "variables are bound at different places");
    }
    if (pair.mode != DefMode::use || options_.map_free_vars) return push(std::move(pair));
    if (left != right) return fail(pair, "different free variables");
    correspond(pair.a, pair.b);
    return true;
  }

  enum class Met { neither, together, apart };
  Met meet(const Object* left, const Object* right) const {
    auto l = to_right_.find(left);
    if (l != to_right_.end()) return l->second.partner.object() == right ? Met::together : Met::apart;
    return to_left_.contains(right) ? Met::apart : Met::neither;
  }
  void correspond(const Value& left, const Value& right) {
    to_right_.emplace(left.object(), Binding{right});
    to_left_.emplace(right.object(), left);
  }

  void note_use(const Object* left) {
    const auto bound = to_right_.find(left);
    const bool may_change = bound != to_right_.end() && bound->second.serial != 0;
    if (may_change && !stack_.empty()) stack_.back().uses.add(left, bound->second.serial);
  }

  // Returns whether the two are bound here, regardless of earlier bindings.
  bool binds_anew(const Pair& pair) const {
    if (!detail::is_bound_anew(pair.a.object()->type_info(), pair.mode)) return false;
    const auto is_for_good = [&](const Value& variable) {
      const auto bound = to_right_.find(variable.object());
      return bound != to_right_.end() && bound->second.serial == 0;
    };
    const auto owner = to_left_.find(pair.b.object());
    return !is_for_good(pair.a) && (owner == to_left_.end() || !is_for_good(owner->second));
  }

  // Takes the binding of a left variable away and gives it.
  Binding unbind(const Value& left) {
    const auto bound = to_right_.find(left.object());
    if (bound == to_right_.end()) return {};
    Binding binding = std::move(bound->second);
    to_left_.erase(binding.partner.object());
    to_right_.erase(bound);
    return binding;
  }
  void bind(const Value& left, const Binding& binding) {
    if (!binding.partner.is_object()) return;
    to_right_[left.object()] = binding;
    to_left_[binding.partner.object()] = left;
  }

  // Binds the variables to each other beyond the node that binds them, unless they were bound before.
  void bind_anew(const Value& left, const Value& right) {
    const auto owner = to_left_.find(right.object());
    Hidden hidden{left, right, {}, owner == to_left_.end() ? Value() : owner->second, {}};
    hidden.of_left = unbind(left);
    if (hidden.right_owner.is_object()) hidden.of_right_owner = unbind(hidden.right_owner);
    bind(left, {right, ++serial_});
    if (!hidden.of_left.partner.is_object() && !hidden.of_right_owner.partner.is_object()) return;
    size_t binder = stack_.size() - 1;
    while (binder > 0 && stack_[binder].pair.mode == DefMode::def_once) --binder;  // past the list of variables
    scope_ = ++scopes_;
    stack_[binder].hidden.push_back(std::move(hidden));
  }

  void show_hidden(Frame& frame) {
    for (; !frame.hidden.empty(); frame.hidden.pop_back()) {
      const Hidden& hidden = frame.hidden.back();
      unbind(hidden.left);
      bind(hidden.right_owner, hidden.of_right_owner);
      bind(hidden.left, hidden.of_left);
    }
    scope_ = frame.scope;
  }

  bool push_unless_proven(Pair pair) {
    const auto known = proven_.find({pair.a.object(), pair.b.object()});
    if (known == proven_.end() || !still_holds(known->second)) return push(std::move(pair));
    if (!stack_.empty()) stack_.back().uses.add(known->second.uses);
    return true;
  }

  bool still_holds(const Proven& proven) const {
    if (proven.scope == scope_) return true;
    const auto stands = [&](const auto& use) {
      const auto bound = to_right_.find(use.first);
      return bound != to_right_.end() && bound->second.serial == use.second;
    };
    return !proven.uses.more && std::all_of(proven.uses.bindings.begin(), proven.uses.bindings.end(), stands);
  }

  bool push(Pair pair) {
    Frame frame{.pair = std::move(pair), .parts = {}, .start = serial_, .scope = scope_};
    const Pair& p = frame.pair;
    if (const auto* array = p.a.as_node<ArrayObj>(); array != nullptr) {
      if (!list_items(frame, *array, *p.b.as_node<ArrayObj>())) return false;
    } else if (const auto* map = p.a.as_node<MapObj>(); map != nullptr) {
      if (!list_entries(frame, *map, *p.b.as_node<MapObj>())) return false;
    } else {
      const TypeInfo& type = p.a.object()->type_info();
      detail::for_each_compared_field(type, [&](const FieldInfo& field) {
        frame.parts.push_back({detail::compared_value(field, p.a.object()), detail::compared_value(field, p.b.object()),
                               detail::mode_of(field, type, p.mode), &field});
      });
    }
    stack_.push_back(std::move(frame));
    return true;
  }

  bool list_items(Frame& frame, const ArrayObj& a, const ArrayObj& b) {
    if (a.items.size() != b.items.size())
      return fail(frame.pair, fmt::format("{} items against {}", a.items.size(), b.items.size()));
    for (size_t i = 0; i < a.items.size(); ++i)
      frame.parts.push_back({a.items[i], b.items[i], frame.pair.mode, nullptr, static_cast<int64_t>(i)});
    return true;
  }

  bool list_entries(Frame& frame, const MapObj& a, const MapObj& b) {
    Partners partners(b);
    for (const auto& [key, value] : a.items) {
      const Entry* partner = find_partner(key, b, partners, frame.pair.mode);
      if (partner == nullptr || !partners.take(partner)) return fail_entry(frame, key, true);
      frame.parts.push_back({key, partner->first, frame.pair.mode, nullptr, -1, key, true});
      frame.parts.push_back({value, partner->second, frame.pair.mode, nullptr, -1, key});
    }
    for (const Entry& entry : b.items) {
      if (!partners.taken(&entry)) return fail_entry(frame, entry.first, false);
    }
    return true;
  }

  bool fail_entry(Frame& frame, const Value& key, bool on_left) {
    Pair pair{{}, {}, frame.pair.mode, nullptr, -1, key};
    stack_.push_back(std::move(frame));
    missing_ = on_left ? 1 : -1;
    (on_left ? pair.a : pair.b) = key;
    return fail(pair, "a key is missing");
  }

  const Entry* find_partner(const Value& key, const MapObj& other, Partners& partners, DefMode mode) const {
    if (detail::is_leaf(key.raw())) {
      const Entry* entry = other.find_item(key.raw());
      return entry != nullptr || !key.is_object() ? entry : partners.next_of(detail::leaf_hash(key.raw()));
    }
    if (auto it = to_right_.find(key.object()); it != to_right_.end()) return other.find_item(it->second.partner.raw());
    if (mode == DefMode::use && !options_.map_free_vars && !to_left_.contains(key.object())) {
      if (const Entry* entry = other.find_item(key.raw()); entry != nullptr) return entry;
    }
    return partners.next_of(detail::key_hash_alone(key, {.map_free_vars = true}));
  }

  void leave() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    const Value &a = frame.pair.a, &b = frame.pair.b;
    if (!frame.hidden.empty()) show_hidden(frame);
    frame.uses.drop_after(frame.start);
    if (!stack_.empty()) stack_.back().uses.add(frame.uses);
    const TypeInfo& type = a.object()->type_info();
    const StructuralKind kind = detail::kind_of(type);
    if (kind == StructuralKind::var && detail::is_bound_anew(type, frame.pair.mode)) {
      bind_anew(a, b);
    } else if ((kind == StructuralKind::dag && !detail::is_empty_list(a.object())) || kind == StructuralKind::var) {
      correspond(a, b);
    } else {
      proven_.insert_or_assign(std::pair(a.object(), b.object()), Proven{a, b, std::move(frame.uses), scope_});
    }
  }

  StructuralOptions options_;
  std::vector<Frame> stack_;
  // Values are kept alive, so that an address does not come back as another node's.
  std::unordered_map<const Object*, Binding> to_right_;
  std::unordered_map<const Object*, Value> to_left_;
  std::unordered_map<std::pair<const Object*, const Object*>, Proven, PairHash> proven_;
  uint64_t serial_ = 0;  // number of the last binding
  // The set of bindings that stand where some are hidden, by number; hiding none gives back the number before.
  uint64_t scope_ = 0, scopes_ = 0;
  Pair failed_;
  std::string reason_;
  int missing_ = 0;  // 1: the right side has no such entry; -1: the left
};

std::string step_text(const Pair& pair) {
  if (pair.field != nullptr) return "." + pair.field->name;
  if (pair.index >= 0) return fmt::format("[{}]", pair.index);
  if (pair.key.is_none()) return "";
  const std::string key = repr(pair.key, {.depth = 1, .items = 4, .size = 60});
  return pair.is_key ? fmt::format(".key({})", key) : fmt::format("[{}]", key);
}

// Describes a difference by the type's own hook: ": element [2] is 1 against 3".
std::string content_difference(const Value& a, const Value& b) {
  if (!a.is_object() || !b.is_object() || a.type_index() != b.type_index()) return "";
  const ContentHooks& hooks = a.object()->type_info().content;
  return hooks.difference == nullptr ? "" : ": " + hooks.difference(*a.object(), *b.object());
}

Mismatch Comparer::mismatch() const {
  Mismatch result;
  for (const Frame& frame : stack_) result.path += step_text(frame.pair);
  result.path += step_text(failed_);
  result.reason = reason_ + content_difference(failed_.a, failed_.b);
  const ReprLimits limits{.depth = 2, .items = 6, .size = 200};
  result.left = missing_ == -1 ? "(missing)" : repr(failed_.a, limits);
  result.right = missing_ == 1 ? "(missing)" : repr(failed_.b, limits);
  return result;
}

}  // namespace

bool structural_equal(const Value& a, const Value& b, StructuralOptions options) { return Comparer(options).run(a, b); }

std::optional<Mismatch> first_mismatch(const Value& a, const Value& b, StructuralOptions options) {
  Comparer comparer(options);
  if (comparer.run(a, b)) return std::nullopt;
  return comparer.mismatch();
}

void assert_structural_equal(const Value& a, const Value& b, StructuralOptions options) {
  if (const auto mismatch = first_mismatch(a, b, options)) {
    throw_user_error("values differ at {}: {}\n  left:  {}\n  right: {}",
                     mismatch->path.empty() ? "the root" : mismatch->path, mismatch->reason, mismatch->left,
                     mismatch->right);
  }
}

}  // namespace headrace
