// The safetensors format, as far as our writers share it: eight bytes with the length of a JSON header, the header, the
// data. Source: the format's page of the safetensors project.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/data_type.h"

namespace headrace::artifact {

inline constexpr size_t kSafetensorsLengthBytes = 8;

// Returns the format's name for a dtype; empty: it has none (int4 ...).
std::string_view safetensors_name(DataType dtype);
// Returns the dtype of that name; nothing for one that is not supported.
std::optional<DataType> safetensors_dtype(std::string_view name);

// One tensor of a file. `name` and `dtype` need no escapes in JSON.
struct SafetensorsRow {
  std::string name;
  std::string_view dtype;  // as safetensors_name gives it
  std::vector<int64_t> shape;
  uint64_t nbytes = 0;
};

// Returns the head of a file, all bytes before the data of these tensors. The tensors follow one another in this order
// without holes, as the format requires. The data begins at a multiple of 64 bytes. `format` is the name of the file's
// form in `__metadata__`, in version 1.
std::string safetensors_head(std::span<const SafetensorsRow> rows, std::string_view format);

}  // namespace headrace::artifact
