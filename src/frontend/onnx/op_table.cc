#include "frontend/onnx/op_table.h"

#include <map>

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/single/rows.h"

namespace headrace::onnx {

namespace {

struct IndexedRow {
  const OpRow* row;
  OpForm form;
};
using OpIndex = std::map<std::string_view, IndexedRow>;
using Families = std::vector<std::span<const OpRow>>;

// Operators that one Relay op computes.
Families single_families() {
  return {activation_rows(), binary_rows(), conv_rows(),      creation_rows(),      fourier_rows(),
          index_rows(),      loss_rows(),   matmul_rows(),    normalization_rows(), pool_rows(),
          quantize_rows(),   random_rows(), recurrent_rows(), reduce_rows(),        region_rows(),
          resize_rows(),     shape_rows(),  sort_rows(),      unary_rows()};
}

// Operators that become several Relay ops.
Families composed_families() {
  return {composed_activation_rows(),    composed_attention_rows(), composed_binary_rows(), composed_loss_rows(),
          composed_normalization_rows(), composed_place_rows(),     composed_pool_rows(),   composed_quantize_rows(),
          composed_random_rows(),        composed_reduce_rows()};
}

void add_rows(OpIndex& index, OpForm form, const Families& families) {
  for (const std::span<const OpRow> family : families) {
    for (const OpRow& row : family) {
      const bool is_new = index.emplace(row.name, IndexedRow{&row, form}).second;
      HEADRACE_CHECK(is_new, "the ONNX operator {} has two rows", row.name);
    }
  }
}

OpIndex standard_index() {
  OpIndex index;
  add_rows(index, OpForm::single, single_families());
  add_rows(index, OpForm::composed, composed_families());
  return index;
}

OpIndex microsoft_index() {
  OpIndex index;
  add_rows(index, OpForm::composed, {microsoft_rows(), microsoft_attention_rows()});
  return index;
}

// Returns the operators of a domain; null if no operator of the domain is supported.
const OpIndex* find_index(std::string_view domain) {
  static const OpIndex standard = standard_index(), microsoft = microsoft_index();
  if (is_default_domain(domain)) return &standard;
  return domain == kMicrosoftDomain ? &microsoft : nullptr;
}

const IndexedRow* find_indexed(std::string_view domain, std::string_view name) {
  const OpIndex* index = find_index(domain);
  if (index == nullptr) return nullptr;
  const auto it = index->find(name);
  return it == index->end() ? nullptr : &it->second;
}

}  // namespace

const OpRow* find_op_row(std::string_view domain, std::string_view name) {
  const IndexedRow* found = find_indexed(domain, name);
  return found == nullptr ? nullptr : found->row;
}

std::optional<OpForm> find_form(std::string_view domain, std::string_view name) {
  const IndexedRow* found = find_indexed(domain, name);
  return found == nullptr ? std::nullopt : std::optional(found->form);
}

bool is_operator(std::string_view domain, std::string_view name) {
  return find_op_row(domain, name) != nullptr || (is_default_domain(domain) && name == "If");
}

std::vector<std::string_view> supported_ops(std::string_view domain) {
  std::vector<std::string_view> names;
  if (const OpIndex* index = find_index(domain)) {
    for (const auto& [name, row] : *index) names.push_back(name);
  }
  return names;
}

}  // namespace headrace::onnx
