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

// The format's name for a dtype; empty: it has none (int4 ...).
std::string_view safetensors_name(DataType dtype);
// The dtype of that name, where we have it.
std::optional<DataType> safetensors_dtype(std::string_view name);

// One tensor of a file. `name` and `dtype` need no escapes in JSON.
struct SafetensorsRow {
  std::string name;
  std::string_view dtype;  // as safetensors_name gives it
  std::vector<int64_t> shape;
  uint64_t nbytes = 0;
};

// All that comes before the data of these tensors, which follow one another in this order, without holes, as the format
// wants it. The data begins at a multiple of 64 bytes. `format` is what `__metadata__` calls the file, in version 1.
std::string safetensors_head(std::span<const SafetensorsRow> rows, std::string_view format);

}  // namespace headrace::artifact
