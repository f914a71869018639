#include "frontend/onnx/op_table.h"

#include <map>

namespace headrace::onnx {

namespace {

std::map<std::string_view, const OpRow*> make_index() {
  std::map<std::string_view, const OpRow*> index;
  for (const std::span<const OpRow> family :
       {activation_rows(), attention_rows(), binary_rows(), conv_rows(),      creation_rows(),      fourier_rows(),
        image_rows(),      index_rows(),     loss_rows(),   matmul_rows(),    normalization_rows(), place_rows(),
        pool_rows(),       quantize_rows(),  random_rows(), recurrent_rows(), reduce_rows(),        region_rows(),
        shape_rows(),      sort_rows(),      unary_rows()}) {
    for (const OpRow& row : family) {
      const bool is_new = index.emplace(row.name, &row).second;
      HEADRACE_CHECK(is_new, "the ONNX operator {} has two rows", row.name);
    }
  }
  return index;
}

const std::map<std::string_view, const OpRow*>& op_index() {
  static const std::map<std::string_view, const OpRow*> index = make_index();
  return index;
}

}  // namespace

const OpRow* find_op_row(std::string_view name) {
  const auto it = op_index().find(name);
  return it == op_index().end() ? nullptr : it->second;
}

std::vector<std::string_view> supported_ops() {
  std::vector<std::string_view> names;
  for (const auto& [name, row] : op_index()) names.push_back(name);
  return names;
}

}  // namespace headrace::onnx
