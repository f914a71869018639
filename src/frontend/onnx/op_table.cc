#include "frontend/onnx/op_table.h"

#include <map>

namespace headrace::onnx {

namespace {

using OpIndex = std::map<std::string_view, const OpRow*>;

OpIndex make_index(std::initializer_list<std::span<const OpRow>> families) {
  OpIndex index;
  for (const std::span<const OpRow> family : families) {
    for (const OpRow& row : family) {
      const bool is_new = index.emplace(row.name, &row).second;
      HEADRACE_CHECK(is_new, "the ONNX operator {} has two rows", row.name);
    }
  }
  return index;
}

// Returns the operators of a domain; null if no operator of the domain is supported.
const OpIndex* find_index(std::string_view domain) {
  static const OpIndex standard = make_index(
      {activation_rows(), attention_rows(), binary_rows(), conv_rows(),      creation_rows(),      fourier_rows(),
       image_rows(),      index_rows(),     loss_rows(),   matmul_rows(),    normalization_rows(), place_rows(),
       pool_rows(),       quantize_rows(),  random_rows(), recurrent_rows(), reduce_rows(),        region_rows(),
       shape_rows(),      sort_rows(),      unary_rows()});
  static const OpIndex microsoft = make_index({microsoft_rows(), microsoft_attention_rows()});
  if (is_default_domain(domain)) return &standard;
  return domain == kMicrosoftDomain ? &microsoft : nullptr;
}

}  // namespace

const OpRow* find_op_row(std::string_view domain, std::string_view name) {
  const OpIndex* index = find_index(domain);
  if (index == nullptr) return nullptr;
  const auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
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
