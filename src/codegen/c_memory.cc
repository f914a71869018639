// Loads and stores in C: buffers are lines of elements.
#include <algorithm>
#include <optional>

#include "codegen/c_kernel.h"
#include "tir/post_order.h"

namespace headrace::codegen {

namespace {

// Elements from one index of dimension `k` to the next, where that is known.
std::optional<int64_t> known_step(const Buffer& buffer, size_t k) {
  if (!buffer->strides.empty()) return as_int(buffer->strides[k]);
  int64_t step = 1;
  for (size_t i = k + 1; i < buffer->shape.size(); ++i) {
    const auto extent = as_int(buffer->shape[i]);
    if (!extent || __builtin_mul_overflow(step, *extent, &step)) return std::nullopt;
  }
  return step;
}

bool reads(const PrimExpr& e, const Buffer& buffer) {
  for (const PrimExpr& part : tir::post_order({e})) {
    const auto* load = part.as<BufferLoadNode>();
    if (load != nullptr && load->buffer == buffer) return true;
  }
  return false;
}

}  // namespace

// Emits an index as a number of 64 bits.
CCode CKernel::index(const PrimExpr& e) {
  const CCode code = emit(e);
  if (e->dtype == kIndexType && (code.has_width || e.is<IntImmNode>())) return code;
  return {fmt::format("(int64_t){}", at_least(code, CLevel::unary)), CLevel::unary};
}

std::string CKernel::offset_of(const Buffer& buffer, const Array<PrimExpr>& indices) {
  std::vector<std::string> terms;
  int64_t constant = 0;
  for (size_t k = 0; k < indices.size(); ++k) {
    const auto step = known_step(buffer, k), at = as_int(indices[k]);
    int64_t product = 0;
    if (at && step && !__builtin_mul_overflow(*at, *step, &product) &&
        !__builtin_add_overflow(constant, product, &constant))
      continue;
    if (at == 0) continue;
    std::string term = at_least(index(indices[k]), step == 1 ? CLevel::sum : CLevel::product);
    if (step && *step != 1) term += fmt::format(" * {}", *step);
    if (!step && !buffer->strides.empty()) term += " * " + at_least(index(buffer->strides[k]), CLevel::unary);
    for (size_t i = k + 1; !step && buffer->strides.empty() && i < buffer->shape.size(); ++i)
      term += " * " + at_least(index(buffer->shape[i]), CLevel::unary);
    terms.push_back(std::move(term));
  }
  if (constant != 0 || terms.empty()) terms.push_back(fmt::format("{}", constant));
  return fmt::format("{}", fmt::join(terms, " + "));
}

std::string CKernel::element_of(const Buffer& buffer, const Array<PrimExpr>& indices, const PrimExpr& offset) {
  const std::string name = use(buffer.get(), buffer->name);
  const std::string at = offset_of(buffer, indices);
  if (!offset || is_int(offset, 0)) return fmt::format("{}[{}]", name, at);
  const std::string behind = at_least(index(offset), CLevel::sum);
  return at == "0" ? fmt::format("{}[{}]", name, behind) : fmt::format("{}[{} + {}]", name, at, behind);
}

// Returns the place that an intrinsic's pointer argument means; the argument is written as a load of that place.
std::string CKernel::element_of(const PrimExpr& place, const PrimExpr& offset) {
  const auto* load = place.as<BufferLoadNode>();
  if (load == nullptr) c_type(place->dtype);
  HEADRACE_CHECK(load != nullptr, "'{}' is not a place", to_string(place));
  return element_of(load->buffer, load->indices, offset);
}

CCode CKernel::from_memory(const std::string& text, DataType dtype) {
  if (dtype.is_bool()) return {text + " != 0", CLevel::equality};
  if (is_c_half(dtype)) return {fmt::format("{}({})", helpers_.use("from_bits", dtype), text)};
  c_type(dtype);
  if (dtype.is_narrow() && dtype.bits() < 8) return {fmt::format("{}((uint32_t){})", helpers_.use_cut(dtype), text)};
  return {text};
}

std::string CKernel::to_memory(const CCode& value, DataType dtype) {
  return is_c_half(dtype) ? fmt::format("{}({})", helpers_.use("bits", dtype), value.text) : value.text;
}

CCode CKernel::reinterpreted(const CCode& value, DataType from, DataType to) {
  const auto casted = [](const std::string& type, const CCode& code) {
    return CCode{fmt::format("({}){}", type, at_least(code, CLevel::unary)), CLevel::unary};
  };
  if (from.element() == to.element()) return value;
  if (to.is_narrow() && to.bits() < 8)
    return {fmt::format("{}((uint32_t){})", helpers_.use_cut(to), at_least(value, CLevel::unary))};
  const std::string unsigned_type = c_type(DataType::uint(to.bits()));
  if (to.is_float() && !from.is_float() && from.bits() >= 32)
    return {fmt::format("{}({})", helpers_.use("from_bits", to), as_unsigned(value, from).text)};
  const CCode bits = from.is_float() ? CCode{fmt::format("{}({})", helpers_.use("bits", from), value.text)} : value;
  if (to.is_float()) return {fmt::format("{}({})", helpers_.use("from_bits", to), casted(unsigned_type, bits).text)};
  if (to.is_bool()) return {fmt::format("{} != 0", at_least(bits, CLevel::sum)), CLevel::equality};
  return from.bits() >= 32 && from.is_float() ? from_unsigned(bits, to) : casted(c_type(to), bits);
}

PrimExpr CKernel::in_lane(const PrimExpr& e, const PrimExpr& lane) const {
  LaneValues values;
  for (const auto& [var, buffer] : vectors_) values[var] = make_load(buffer, {lane});
  return lane_of(e, lane, values);
}

void CKernel::write_store(const tir::BufferStoreNode& store) {
  if (store.value->dtype.lanes() > 1) return write_vector_store(store);
  open_statement(tir::expressions_of(ref(&store)));
  const std::string value = to_memory(emit(store.value), store.buffer->dtype);
  line(fmt::format("{} = {};", element_of(store.buffer, store.indices), value));
}

// Stores a vector; computes all lanes before it stores one, where a load may alias the store.
void CKernel::write_vector_store(const tir::BufferStoreNode& store) {
  const int lanes = store.value->dtype.lanes();
  const bool is_direct = no_alias_ && !reads(store.value, store.buffer) &&
                         std::none_of(store.indices.begin(), store.indices.end(),
                                      [&](const PrimExpr& at) { return reads(at, store.buffer); });
  const auto place = [&](const PrimExpr& lane) {
    Array<PrimExpr> indices;
    for (const PrimExpr& at : store.indices) indices.push_back(in_lane(at, lane));
    return indices;
  };
  const DataType dtype = store.buffer->dtype;
  if (is_direct) {
    return each_lane(lanes, [&](const PrimExpr& lane) {
      const tir::Stmt scalar = tir::make_store(store.buffer, in_lane(store.value, lane), place(lane));
      write_store(*scalar.as<tir::BufferStoreNode>());
    });
  }
  block("", [&] {
    const Buffer lines = make_buffer("lanes", dtype, {make_int(lanes)});
    bind(lines.get(), "lanes", c_memory_type(dtype) + "*");
    line(fmt::format("{} {}[{}];", c_memory_type(dtype), use(lines.get(), "lanes"), lanes));
    each_lane(lanes, [&](const PrimExpr& lane) {
      const tir::Stmt scalar = tir::make_store(lines, in_lane(store.value, lane), {lane});
      write_store(*scalar.as<tir::BufferStoreNode>());
    });
    each_lane(lanes, [&](const PrimExpr& lane) {
      const tir::Stmt scalar = tir::make_store(store.buffer, make_load(lines, {lane}), place(lane));
      write_store(*scalar.as<tir::BufferStoreNode>());
    });
  });
}

}  // namespace headrace::codegen
