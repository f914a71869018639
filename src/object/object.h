// Object: a counted, typed node shared by C++ and Python. Ref<T>: the counted pointer to it.
//
// A node type is a plain struct that derives from Object or another node type and says
//   using Parent = ExprNode;                               // the node type it derives from
//   static constexpr std::string_view type_key = "relay.Var";
//   static void fields(FieldList<VarNode>& f);            // see reflect.h; omit when it has no fields of its own
// and may say
//   static constexpr int32_t child_slots = 8;              // type indices reserved for its children
//   static constexpr bool is_final = true;                 // nothing derives from it
//   static constexpr bool child_slots_can_overflow = false;  // a child past the slots is a defect, not a slower check
//   static constexpr StructuralKind structural_kind = StructuralKind::var;  // inherited; Object's is `unique`
// A type whose content is not in fields (a string, a tensor) may say how it is compared, hashed, saved and shown:
//   static bool content_equal(const T& a, const T& b);
//   static uint64_t content_hash(const T& node);           // the same in every process
//   static NamedValues save_content(const T& node);        // numbers, strings, Bytes, dtypes, Shapes
//   static Ref<T> load_content(const NamedValues& saved);  // UserError on anything save_content would not give
//   static std::string content_text(const T& node);        // one short line
//   static std::string content_difference(const T& a, const T& b);  // how two that are not equal differ, in a line
// A node has no virtual destructor: its deleter knows its type. Cycles of references are not collected; IR has none.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

#include "base/error.h"
#include "object/type_index.h"

namespace headrace {

template <typename T>
class FieldList;
struct TypeInfo;
class Value;
template <typename T>
class Ref;

// How structural equality treats a node.
enum class StructuralKind : uint8_t {
  tree,      // equal when all fields are equal
  dag,       // as tree, and sharing must correspond
  var,       // equal when bound at the corresponding place (or mapped, for free variables)
  constant,  // as tree, and the same pointer is equal at once: it holds no variables
  unique,    // equal only to itself
};

// The 24-byte header: counts (strong in the low half, weak in the high half), type, deleter.
class Object {
 public:
  static constexpr std::string_view type_key = "object.Object";
  static constexpr int32_t child_slots = 0;
  static constexpr bool child_slots_can_overflow = true;
  static constexpr bool is_final = false;
  static constexpr StructuralKind structural_kind = StructuralKind::unique;

  Object() = default;
  // Copying makes a new object, which gets counts, type and deleter of its own.
  Object(const Object&) {}
  Object& operator=(const Object&) { return *this; }

  int32_t type_index() const { return type_index_; }
  const TypeInfo& type_info() const;
  std::string_view key() const;
  // Loads with acquire order: a caller that finds itself the only owner may write, because all reads of former owners
  // happened before.
  uint32_t use_count() const { return static_cast<uint32_t>(counts_.load(std::memory_order_acquire)); }
  bool is_unique() const { return use_count() == 1; }

  template <typename T>
  bool is_instance() const;

  void inc_strong() { counts_.fetch_add(1, std::memory_order_relaxed); }
  void dec_strong();
  void inc_weak() { counts_.fetch_add(kWeakOne, std::memory_order_relaxed); }
  void dec_weak();
  // Takes a strong reference unless the object is already gone.
  bool try_promote();

 private:
  template <typename T, typename... Args>
  friend T* allocate_object(Args&&... args);
  static constexpr uint64_t kWeakOne = uint64_t{1} << 32;
  static constexpr int kDeleteStrong = 1;  // run the destructor
  static constexpr int kDeleteWeak = 2;    // free the memory

  // Runs deleters one after another instead of within each other, so that a chain of any length is freed in constant
  // stack.
  static void destroy(Object* object);

  std::atomic<uint64_t> counts_{0};
  int32_t type_index_ = type_index::kObject;
  uint32_t reserved_ = 0;
  void (*deleter_)(void* self, int flags) = nullptr;
};
static_assert(sizeof(Object) == 24);

using NamedValues = std::vector<std::pair<std::string, Value>>;

// Content that is not in fields; all null for a type that has none.
struct ContentHooks {
  bool (*equal)(const Object& a, const Object& b) = nullptr;
  uint64_t (*hash)(const Object& node) = nullptr;
  NamedValues (*save)(const Object& node) = nullptr;
  Ref<Object> (*load)(const NamedValues& saved) = nullptr;
  std::string (*text)(const Object& node) = nullptr;
  std::string (*difference)(const Object& a, const Object& b) = nullptr;
};

// Describes a node type to the process. Entries are never removed and never move.
struct FieldInfo;
struct TypeInfo {
  int32_t index;
  int32_t slots_end;  // children with an index below this one are found by range
  bool slots_can_overflow;
  std::string key;
  const TypeInfo* parent;
  std::vector<int32_t> ancestors;  // from Object down to the parent
  StructuralKind structural_kind;
  std::vector<FieldInfo> fields;      // inherited ones first
  Object* (*make_empty)() = nullptr;  // a node with default fields and no reference yet; null for abstract types
  ContentHooks content;
  std::string cpp_name;  // tells apart two C++ types that claim one key
};

namespace detail {
struct TypeRequest {
  std::string_view key;
  const TypeInfo* parent;
  int32_t static_index;  // negative: allocate one
  int32_t child_slots;
  bool slots_can_overflow;
  StructuralKind structural_kind;
  Object* (*make_empty)();
  void (*list_fields)(TypeInfo&);
  ContentHooks content;
  const char* cpp_name;
};
const TypeInfo& register_type(const TypeRequest& request);
bool is_ancestor(int32_t index, const TypeInfo& ancestor);
template <typename T>
const TypeInfo& make_type();
}  // namespace detail

const TypeInfo& type_info_of(int32_t index);
// Returns the type; null when none of that key is registered.
const TypeInfo* find_type(std::string_view key);
// Returns the registered types, by index.
std::vector<const TypeInfo*> all_types();

// Returns the type's entry; registers the type and its parents at first use.
template <typename T>
const TypeInfo& type_of() {
  static const TypeInfo& info = detail::make_type<std::remove_cv_t<T>>();
  return info;
}

template <typename T>
bool Object::is_instance() const {
  if constexpr (std::is_same_v<T, Object>) {
    return true;
  } else {
    const TypeInfo& info = type_of<T>();
    if (type_index_ >= info.index && type_index_ < info.slots_end) return true;
    if (T::is_final || !info.slots_can_overflow) return false;
    return detail::is_ancestor(type_index_, info);
  }
}

template <typename T>
concept IsNode = std::derived_from<T, Object>;

// A counted pointer to a node; null when default-constructed. A field that may be null must say so in its options.
template <typename T>
class Ref {
 public:
  using Node = T;
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* node) : object_(static_cast<Object*>(const_cast<std::remove_const_t<T>*>(node))) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <typename U>
    requires(std::derived_from<U, T> && !std::same_as<U, T>)
  Ref(const Ref<U>& other) : object_(other.object()) {
    retain();
  }
  template <typename U>
    requires(std::derived_from<U, T> && !std::same_as<U, T>)
  Ref(Ref<U>&& other) noexcept : object_(other.release()) {}
  ~Ref() {
    if (object_ != nullptr) object_->dec_strong();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  T* get() const { return object_ == nullptr ? nullptr : static_cast<T*>(object_); }
  T* operator->() const { return get(); }
  T& operator*() const { return *get(); }
  explicit operator bool() const { return object_ != nullptr; }
  bool defined() const { return object_ != nullptr; }
  Object* object() const { return object_; }
  Object* release() { return std::exchange(object_, nullptr); }
  // Takes over one reference that the caller holds.
  static Ref adopt(Object* object) {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  bool same_as(const Ref& other) const { return object_ == other.object_; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }
  template <typename U>
  friend bool operator==(const Ref& a, const Ref<U>& b) {
    return a.object() == b.object();
  }

  // Returns the node as a U, or null when it is none.
  template <typename U>
  const U* as() const {
    return object_ != nullptr && object_->template is_instance<U>() ? static_cast<const U*>(object_) : nullptr;
  }
  template <typename U>
  bool is() const {
    return as<U>() != nullptr;
  }
  // Converts the reference to a Ref<U>; null when the object has another type.
  template <typename U>
  Ref<U> cast() const {
    return as<U>() != nullptr ? Ref<U>(static_cast<U*>(object_)) : Ref<U>();
  }

 private:
  void retain() {
    if (object_ != nullptr) object_->inc_strong();
  }
  Object* object_ = nullptr;
};

using ObjectRef = Ref<Object>;

// A pointer that does not keep its object alive.
template <typename T>
class WeakRef {
 public:
  WeakRef() = default;
  explicit WeakRef(const Ref<T>& ref) : object_(ref.object()) {
    if (object_ != nullptr) object_->inc_weak();
  }
  WeakRef(const WeakRef& other) : object_(other.object_) {
    if (object_ != nullptr) object_->inc_weak();
  }
  WeakRef(WeakRef&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~WeakRef() {
    if (object_ != nullptr) object_->dec_weak();
  }
  WeakRef& operator=(WeakRef other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  // Returns the object, or null when it has been destroyed.
  Ref<T> lock() const { return object_ != nullptr && object_->try_promote() ? Ref<T>::adopt(object_) : Ref<T>(); }

 private:
  Object* object_ = nullptr;
};

template <typename T, typename... Args>
T* allocate_object(Args&&... args) {
  const int32_t type_index = type_of<T>().index;  // first: it may throw
  T* node = static_cast<T*>(::operator new(sizeof(T), std::align_val_t{alignof(T)}));
  try {
    ::new (node) T(std::forward<Args>(args)...);
  } catch (...) {
    ::operator delete(node, std::align_val_t{alignof(T)});
    throw;
  }
  Object* object = node;
  object->type_index_ = type_index;
  object->counts_.store(Object::kWeakOne, std::memory_order_relaxed);
  object->deleter_ = [](void* self, int flags) {
    T* typed = static_cast<T*>(static_cast<Object*>(self));
    if ((flags & Object::kDeleteStrong) != 0) typed->~T();
    if ((flags & Object::kDeleteWeak) != 0) ::operator delete(static_cast<void*>(typed), std::align_val_t{alignof(T)});
  };
  return node;
}

template <typename T, typename... Args>
Ref<T> make_object(Args&&... args) {
  return Ref<T>(allocate_object<T>(std::forward<Args>(args)...));
}

// Returns a copy of `node` after `change` (a callable on T&) has edited it. Write-once slots start empty in a copy.
template <typename T, typename F>
Ref<T> copy_with(const T& node, F&& change) {
  HEADRACE_CHECK(node.type_index() == type_of<T>().index, "copy_with would cut a {} down to a {}", node.key(),
                 T::type_key);
  Ref<T> copy = make_object<T>(node);
  change(*copy);
  return copy;
}

template <typename T>
Ref<T> ref(const T* node) {
  return Ref<T>(const_cast<T*>(node));
}

// Hash of a reference's identity, for maps keyed by pointer.
struct RefHash {
  template <typename T>
  size_t operator()(const Ref<T>& ref) const {
    return std::hash<const void*>()(ref.object());
  }
};

namespace detail {
// Returns the type index that T fixes at compile time. A type inherits its parent's members, so an index that the
// parent has, too, does not count.
template <typename T>
constexpr int32_t static_index_of() {
  if constexpr (requires { T::static_type_index; } && !requires { T::Parent::static_type_index; }) {
    return T::static_type_index;
  } else {
    return -1;
  }
}
template <typename T>
void list_own_fields(TypeInfo& info);

template <typename T>
ContentHooks content_hooks() {
  ContentHooks hooks;
  if constexpr (requires(const T& node) { T::content_equal(node, node); }) {
    hooks.equal = [](const Object& a, const Object& b) {
      return T::content_equal(static_cast<const T&>(a), static_cast<const T&>(b));
    };
    hooks.hash = [](const Object& node) -> uint64_t { return T::content_hash(static_cast<const T&>(node)); };
  }
  if constexpr (requires(const T& node) { T::save_content(node); }) {
    hooks.save = [](const Object& node) { return T::save_content(static_cast<const T&>(node)); };
    hooks.load = [](const NamedValues& saved) -> Ref<Object> { return T::load_content(saved); };
  }
  if constexpr (requires(const T& node) { T::content_text(node); }) {
    hooks.text = [](const Object& node) { return T::content_text(static_cast<const T&>(node)); };
  }
  if constexpr (requires(const T& node) { T::content_difference(node, node); }) {
    hooks.difference = [](const Object& a, const Object& b) {
      return T::content_difference(static_cast<const T&>(a), static_cast<const T&>(b));
    };
  }
  return hooks;
}

template <typename T>
const TypeInfo& make_type() {
  TypeRequest request{};
  request.key = T::type_key;
  if constexpr (std::is_same_v<T, Object>) {
    request.parent = nullptr;
    request.static_index = type_index::kObject;
  } else {
    using Parent = typename T::Parent;
    static_assert(std::derived_from<T, Parent> && !Parent::is_final);
    static_assert(
        T::is_final || T::child_slots == 0 || Parent::child_slots == 0 || T::child_slots < Parent::child_slots,
        "a child's slots fit in its parent's; a final type says is_final");
    request.parent = &type_of<Parent>();
    request.static_index = static_index_of<T>();
    static_assert(static_index_of<T>() < 0 || T::is_final || T::child_slots == 0,
                  "the indices after a static one belong to others");
  }
  request.slots_can_overflow = T::child_slots_can_overflow;
  request.content = content_hooks<T>();
  request.cpp_name = typeid(T).name();
  request.child_slots = T::is_final ? 0 : T::child_slots;
  request.structural_kind = T::structural_kind;
  // Containers, functions and tensors are not made from fields: without their content they are not valid.
  if constexpr (std::is_default_constructible_v<T> && T::is_final && !requires { T::static_type_index; })
    request.make_empty = []() -> Object* { return allocate_object<T>(); };
  request.list_fields = &list_own_fields<T>;
  return register_type(request);
}
}  // namespace detail

}  // namespace headrace

template <typename T>
struct std::hash<headrace::Ref<T>> {
  size_t operator()(const headrace::Ref<T>& ref) const { return headrace::RefHash()(ref); }
};
