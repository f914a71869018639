#include "object/object.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "object/reflect.h"

namespace headrace {

namespace {

constexpr int32_t kChunkBits = 8;
constexpr int32_t kChunkSize = 1 << kChunkBits;
constexpr int32_t kChunks = 256;

// Types by index in chunks that never move, so that a read takes no lock.
struct TypeTable {
  std::array<std::atomic<std::atomic<const TypeInfo*>*>, kChunks> chunks{};
  std::mutex mutex;
  std::map<std::string, TypeInfo*, std::less<>> by_key;
  std::map<int32_t, int32_t> next_slot;  // by parent index: the next reserved index
  int32_t next_dynamic = type_index::kDynamicObjectBegin;

  const TypeInfo* at(int32_t index) const {
    if (index < 0 || index >= kChunkSize * kChunks) return nullptr;
    auto* chunk = chunks[static_cast<size_t>(index >> kChunkBits)].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : chunk[index & (kChunkSize - 1)].load(std::memory_order_acquire);
  }

  void put(int32_t index, const TypeInfo* info) {
    HEADRACE_CHECK(index < kChunkSize * kChunks, "more than {} types", kChunkSize * kChunks);
    auto& slot = chunks[static_cast<size_t>(index >> kChunkBits)];
    if (slot.load(std::memory_order_relaxed) == nullptr)
      slot.store(new std::atomic<const TypeInfo*>[kChunkSize](), std::memory_order_release);
    slot.load(std::memory_order_relaxed)[index & (kChunkSize - 1)].store(info, std::memory_order_release);
  }

  // Takes an index from the parent's reserved range while it lasts, else a fresh one with room for `child_slots`
  // children.
  int32_t allocate(const TypeInfo* parent, int32_t child_slots) {
    const int32_t need = 1 + child_slots;
    if (parent != nullptr && parent->slots_end > parent->index + 1) {
      int32_t& next = next_slot.try_emplace(parent->index, parent->index + 1).first->second;
      if (next + need <= parent->slots_end) {
        const int32_t index = next;
        next += need;
        return index;
      }
    }
    HEADRACE_CHECK(parent == nullptr || parent->slots_can_overflow, "{} has no slot left for another child type",
                   parent->key);
    const int32_t index = next_dynamic;
    next_dynamic += need;
    return index;
  }
};

// Returns the table, which is never destroyed: objects may be destroyed after static destructors have run.
TypeTable& table() {
  static TypeTable& instance = *new TypeTable;
  return instance;
}

}  // namespace

static std::unique_ptr<TypeInfo> describe_type(const detail::TypeRequest& request) {
  auto info = std::make_unique<TypeInfo>();
  info->key = std::string(request.key);
  info->parent = request.parent;
  info->slots_can_overflow = request.slots_can_overflow;
  info->structural_kind = request.structural_kind;
  info->make_empty = request.make_empty;
  info->content = request.content;
  info->cpp_name = request.cpp_name;
  if (request.parent != nullptr) {
    info->ancestors = request.parent->ancestors;
    info->ancestors.push_back(request.parent->index);
    info->fields = request.parent->fields;
  }
  request.list_fields(*info);
  for (auto field = info->fields.begin(); field != info->fields.end(); ++field) {
    HEADRACE_CHECK(std::none_of(info->fields.begin(), field, [&](const auto& f) { return f.name == field->name; }),
                   "{} lists its field '{}' twice", info->key, field->name);
  }
  return info;
}

const TypeInfo& detail::register_type(const TypeRequest& request) {
  // Before the lock: a field's default value may need another type, whose first use may be under way in another thread
  // that waits for this lock.
  std::unique_ptr<TypeInfo> info = describe_type(request);
  TypeTable& types = table();
  std::lock_guard lock(types.mutex);
  // Every image that uses the type comes here once; the first one's entry counts.
  if (auto it = types.by_key.find(request.key); it != types.by_key.end()) {
    HEADRACE_CHECK(it->second->cpp_name == info->cpp_name, "two C++ types claim the type key '{}': {} and {}",
                   info->key, it->second->cpp_name, info->cpp_name);
    return *it->second;
  }
  info->index = request.static_index >= 0 ? request.static_index : types.allocate(request.parent, request.child_slots);
  info->slots_end = info->index + 1 + request.child_slots;
  types.put(info->index, info.get());
  types.by_key.emplace(info->key, info.get());
  return *info.release();
}

bool detail::is_ancestor(int32_t index, const TypeInfo& ancestor) {
  const TypeInfo* info = table().at(index);
  if (info == nullptr) return false;
  const size_t depth = ancestor.ancestors.size();
  return info == &ancestor || (info->ancestors.size() > depth && info->ancestors[depth] == ancestor.index);
}

const TypeInfo& type_info_of(int32_t index) {
  const TypeInfo* info = table().at(index);
  HEADRACE_CHECK(info != nullptr, "type index {} is not registered", index);
  return *info;
}

const TypeInfo* find_type(std::string_view key) {
  TypeTable& types = table();
  std::lock_guard lock(types.mutex);
  auto it = types.by_key.find(key);
  return it == types.by_key.end() ? nullptr : it->second;
}

std::vector<const TypeInfo*> all_types() {
  TypeTable& types = table();
  std::lock_guard lock(types.mutex);
  std::map<int32_t, const TypeInfo*> sorted;
  for (const auto& [key, info] : types.by_key) sorted.emplace(info->index, info);
  std::vector<const TypeInfo*> result;
  for (const auto& [index, info] : sorted) result.push_back(info);
  return result;
}

const TypeInfo& Object::type_info() const { return type_info_of(type_index_); }
std::string_view Object::key() const { return type_info().key; }

void Object::dec_strong() {
  const uint64_t before = counts_.fetch_sub(1, std::memory_order_acq_rel);
  if (static_cast<uint32_t>(before) == 1) destroy(this);
}

void Object::dec_weak() {
  const uint64_t before = counts_.fetch_sub(kWeakOne, std::memory_order_acq_rel);
  if (before >> 32 == 1) deleter_(this, kDeleteWeak);
}

bool Object::try_promote() {
  uint64_t counts = counts_.load(std::memory_order_relaxed);
  while (static_cast<uint32_t>(counts) != 0) {
    if (counts_.compare_exchange_weak(counts, counts + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void Object::destroy(Object* object) {
  thread_local std::vector<Object*>* pending = nullptr;
  if (pending != nullptr) {
    pending->push_back(object);
    return;
  }
  std::vector<Object*> queue;  // no allocation for an object that is the last owner of none
  pending = &queue;
  for (Object* dead = object; dead != nullptr;) {
    dead->deleter_(dead, kDeleteStrong);
    dead->dec_weak();  // all strong references together hold one weak reference
    dead = queue.empty() ? nullptr : queue.back();
    if (dead != nullptr) queue.pop_back();
  }
  pending = nullptr;
}

}  // namespace headrace
