#include "tir/workspace.h"

#include <headrace/kernel_abi.h>

#include <algorithm>
#include <unordered_set>

#include "object/map.h"
#include "tir/post_order.h"

namespace headrace::tir {

uint64_t size_bytes_of(const BufferNode& buffer) {
  uint64_t count = 1;
  for (const PrimExpr& dim : buffer.shape) {
    const auto extent = as_int(dim);
    HEADRACE_CHECK(extent.has_value() && *extent >= 0, "buffer '{}' has no constant shape", buffer.name);
    HEADRACE_CHECK(!__builtin_mul_overflow(count, static_cast<uint64_t>(*extent), &count), "buffer '{}' is too large",
                   buffer.name);
  }
  HEADRACE_CHECK(!__builtin_mul_overflow(count, buffer.dtype.bytes(), &count), "buffer '{}' is too large", buffer.name);
  return count;
}

namespace {

using AllocationVisitor = std::function<void(const BufferNode&)>;

// Calls `enter` at each allocation of workspace and `leave` behind its body.
void visit_allocations(const Stmt& stmt, const AllocationVisitor& enter, const AllocationVisitor& leave) {
  const auto* allocation = stmt.as<AllocateNode>();
  const bool is_workspace = allocation != nullptr && allocation->scope == Scope::workspace;
  if (is_workspace) enter(*allocation->buffer);
  for (const Stmt& inner : statements_of(stmt)) {
    if (inner) visit_allocations(inner, enter, leave);
  }
  if (is_workspace) leave(*allocation->buffer);
}

// Returns the buffers in the workspace, each once, in the order of their first allocation.
std::vector<const BufferNode*> workspace_buffers(const PrimFuncNode& function) {
  std::vector<const BufferNode*> buffers;
  std::unordered_set<const BufferNode*> seen;
  const auto enter = [&](const BufferNode& buffer) {
    if (seen.insert(&buffer).second) buffers.push_back(&buffer);
  };
  if (function.body) visit_allocations(function.body, enter, [](const BufferNode&) {});
  return buffers;
}

uint64_t aligned(uint64_t bytes) { return (bytes + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT; }

WorkspaceLayout lay_out(const PrimFuncNode& function) {
  WorkspaceLayout layout;
  std::vector<uint64_t> tops{0};
  visit_allocations(
      function.body,
      [&](const BufferNode& buffer) {
        // A copy of an allocation elsewhere has the same place.
        uint64_t& offset = layout.offset_bytes[&buffer];
        offset = std::max(offset, tops.back());
        tops.push_back(offset + aligned(size_bytes_of(buffer)));
        layout.size_bytes = std::max(layout.size_bytes, tops.back());
      },
      [&](const BufferNode&) { tops.pop_back(); });
  return layout;
}

std::optional<int64_t> as_number(const Value& value) {
  return value.is<int64_t>() ? std::optional(value.as<int64_t>()) : std::nullopt;
}

// The attribute's numbers, in its order.
struct Numbers {
  int64_t bytes = 0;
  std::vector<int64_t> offsets;
};

// Reads the attribute; nothing where it has another form.
std::optional<Numbers> read_numbers(const Value& attribute) {
  if (!ValueTraits<Map<std::string, Value>>::matches(attribute.raw())) return std::nullopt;
  const auto map = attribute.as<Map<std::string, Value>>();
  const auto bytes = map.get("bytes"), offsets = map.get("offsets");
  if (!bytes || !offsets || map.size() != 2 || !as_number(*bytes)) return std::nullopt;
  if (!ValueTraits<Array<Value>>::matches(offsets->raw())) return std::nullopt;
  Numbers numbers{.bytes = *as_number(*bytes), .offsets = {}};
  for (const Value& offset : offsets->as<Array<Value>>()) {
    const auto number = as_number(offset);
    if (!number) return std::nullopt;
    numbers.offsets.push_back(*number);
  }
  return numbers;
}

bool is_aligned(int64_t bytes) { return bytes >= 0 && bytes % HR_ALIGNMENT == 0; }

// Returns the rules that these places break.
std::vector<std::string> breaches_of_places(const PrimFuncNode& function,
                                            const std::unordered_map<const BufferNode*, int64_t>& places,
                                            int64_t bytes) {
  std::vector<std::string> breaches;
  std::vector<const BufferNode*> open;
  const auto end_of = [&](const BufferNode& it) { return places.at(&it) + static_cast<int64_t>(size_bytes_of(it)); };
  const auto enter = [&](const BufferNode& buffer) {
    if (!is_aligned(places.at(&buffer)) || end_of(buffer) > bytes)
      breaches.push_back(fmt::format("the buffer '{}' at {} does not fit into {} bytes in steps of {}", buffer.name,
                                     places.at(&buffer), bytes, HR_ALIGNMENT));
    for (const BufferNode* outer : open) {
      if (places.at(outer) < end_of(buffer) && places.at(&buffer) < end_of(*outer))
        breaches.push_back(fmt::format("the buffers '{}' and '{}' overlap", outer->name, buffer.name));
    }
    open.push_back(&buffer);
  };
  visit_allocations(function.body, enter, [&](const BufferNode&) { open.pop_back(); });
  return breaches;
}

}  // namespace

PrimFunc with_workspace(const PrimFunc& function) {
  if (function->attrs.contains(std::string(kWorkspace))) return function;
  const std::vector<const BufferNode*> buffers = workspace_buffers(*function);
  if (buffers.empty()) return function;
  const WorkspaceLayout layout = lay_out(*function);
  Array<Value> offsets;
  for (const BufferNode* buffer : buffers)
    offsets.push_back(Value(static_cast<int64_t>(layout.offset_bytes.at(buffer))));
  Map<std::string, Value> attribute;
  attribute.set("bytes", Value(static_cast<int64_t>(layout.size_bytes)));
  attribute.set("offsets", Value(offsets));
  return copy_with(*function, [&](PrimFuncNode& copy) { copy.attrs.set(std::string(kWorkspace), Value(attribute)); });
}

WorkspaceLayout workspace_of(const PrimFuncNode& function) {
  const std::vector<const BufferNode*> buffers = workspace_buffers(function);
  if (buffers.empty()) return {};
  const auto attribute = function.attrs.get(std::string(kWorkspace));
  if (!attribute)
    throw_user_error("the kernel '{}' allocates workspace and has no attribute {}: tir::with_workspace lays it out",
                     symbol_of(function), kWorkspace);
  const auto numbers = read_numbers(*attribute);
  HEADRACE_CHECK(numbers && numbers->offsets.size() == buffers.size(), "the attribute {} of '{}' is malformed",
                 kWorkspace, symbol_of(function));
  WorkspaceLayout layout{.size_bytes = static_cast<uint64_t>(numbers->bytes), .offset_bytes = {}};
  for (size_t i = 0; i < buffers.size(); ++i)
    layout.offset_bytes[buffers[i]] = static_cast<uint64_t>(numbers->offsets[i]);
  return layout;
}

std::vector<std::string> breaches_of_workspace(const PrimFuncNode& function) {
  const auto attribute = function.attrs.get(std::string(kWorkspace));
  if (!attribute) return {};
  const auto numbers = read_numbers(*attribute);
  if (!numbers) return {fmt::format("{} is not {{\"bytes\": .., \"offsets\": [..]}} of integers", kWorkspace)};
  const std::vector<const BufferNode*> buffers = workspace_buffers(function);
  if (numbers->offsets.size() != buffers.size())
    return {fmt::format("{} has {} offsets for {} buffers", kWorkspace, numbers->offsets.size(), buffers.size())};
  if (!is_aligned(numbers->bytes))
    return {fmt::format("{} has {} bytes, which is not a multiple of {}", kWorkspace, numbers->bytes, HR_ALIGNMENT)};
  std::unordered_map<const BufferNode*, int64_t> places;
  for (size_t i = 0; i < buffers.size(); ++i) places[buffers[i]] = numbers->offsets[i];
  return breaches_of_places(function, places, numbers->bytes);
}

}  // namespace headrace::tir
