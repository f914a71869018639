#include "object/structural_equal.h"

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

// Two nodes whose parts are being compared.
struct Frame {
  Pair pair;
  std::vector<Pair> parts;
  size_t next = 0;
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
        if (const Met met = meet(left, right); met != Met::neither)
          return met == Met::together || fail(pair, "sharing differs: one side was met before, elsewhere");
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
    if (const Met met = meet(left, right); met != Met::neither)
      return met == Met::together || fail(pair, "variables are bound at different places");
    if (pair.mode != DefMode::use || options_.map_free_vars) return push(std::move(pair));
    if (left != right) return fail(pair, "different free variables");
    correspond(pair.a, pair.b);
    return true;
  }

  enum class Met { neither, together, apart };
  Met meet(const Object* left, const Object* right) const {
    auto l = to_right_.find(left);
    if (l != to_right_.end()) return l->second.object() == right ? Met::together : Met::apart;
    return to_left_.contains(right) ? Met::apart : Met::neither;
  }
  void correspond(const Value& left, const Value& right) {
    to_right_.emplace(left.object(), right);
    to_left_.emplace(right.object(), left);
  }

  bool push_unless_proven(Pair pair) {
    if (proven_.contains({pair.a.object(), pair.b.object()})) return true;
    return push(std::move(pair));
  }

  bool push(Pair pair) {
    Frame frame{std::move(pair), {}, 0};
    const Pair& p = frame.pair;
    if (const auto* array = p.a.as_node<ArrayObj>(); array != nullptr) {
      if (!list_items(frame, *array, *p.b.as_node<ArrayObj>())) return false;
    } else if (const auto* map = p.a.as_node<MapObj>(); map != nullptr) {
      if (!list_entries(frame, *map, *p.b.as_node<MapObj>())) return false;
    } else {
      const TypeInfo& type = p.a.object()->type_info();
      for (const FieldInfo& field : type.fields) {
        if (!detail::counts(field)) continue;
        frame.parts.push_back(
            {field.get(p.a.object()), field.get(p.b.object()), detail::mode_of(field, type, p.mode), &field});
      }
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
    if (auto it = to_right_.find(key.object()); it != to_right_.end()) return other.find_item(it->second.raw());
    if (mode == DefMode::use && !options_.map_free_vars && !to_left_.contains(key.object())) {
      if (const Entry* entry = other.find_item(key.raw()); entry != nullptr) return entry;
    }
    return partners.next_of(detail::key_hash_alone(key, {.map_free_vars = true}));
  }

  void leave() {
    const Pair pair = std::move(stack_.back().pair);
    stack_.pop_back();
    const StructuralKind kind = detail::kind_of(pair.a.object()->type_info());
    if (kind == StructuralKind::dag || kind == StructuralKind::var) {
      correspond(pair.a, pair.b);
    } else {
      proven_.emplace(std::pair(pair.a.object(), pair.b.object()), std::pair(pair.a, pair.b));
    }
  }

  StructuralOptions options_;
  std::vector<Frame> stack_;
  // Values are kept alive, so that an address does not come back as another node's.
  std::unordered_map<const Object*, Value> to_right_, to_left_;
  std::unordered_map<std::pair<const Object*, const Object*>, std::pair<Value, Value>, PairHash> proven_;
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

Mismatch Comparer::mismatch() const {
  Mismatch result;
  for (const Frame& frame : stack_) result.path += step_text(frame.pair);
  result.path += step_text(failed_);
  result.reason = reason_;
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
