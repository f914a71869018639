#include "plan/side_file.h"

#include <array>
#include <cerrno>
#include <cstring>

#include "artifact/safetensors.h"
#include "artifact/trailer.h"
#include "base/error.h"
#include "base/write_all.h"

namespace headrace::plan {

using artifact::SafetensorsRow;
using artifact::Weight;

namespace {

constexpr std::array<std::byte, HR_ALIGNMENT> kZeros{};

// A row of the file and the bytes behind it.
struct Piece {
  SafetensorsRow row;
  std::span<const std::byte> bytes;
};

SafetensorsRow row_of(size_t index, const Weight& weight) {
  const std::string_view dtype = artifact::safetensors_name(weight.dtype);
  SafetensorsRow row{.name = fmt::format("weight.{}", index),
                     .dtype = dtype,
                     .shape = weight.shape,
                     .nbytes = static_cast<uint64_t>(weight.nbytes)};
  if (dtype.empty()) {
    row.dtype = "U8";
    row.shape = {weight.nbytes};
  }
  return row;
}

std::vector<Piece> pieces_of(const WeightTable& table) {
  std::vector<Piece> pieces;
  int64_t end = 0;
  for (size_t i = 0; i < table.weights().size(); ++i) {
    const Weight& weight = table.weights()[i];
    if (weight.offset < end || weight.nbytes == 0) continue;  // shares another's bytes, or has none
    if (const int64_t gap = weight.offset - end; gap > 0) {
      const auto nbytes = static_cast<uint64_t>(gap);
      pieces.push_back(
          {{.name = fmt::format("padding.{}", pieces.size()), .dtype = "U8", .shape = {gap}, .nbytes = nbytes},
           std::span(kZeros).first(nbytes)});
    }
    pieces.push_back({row_of(i, weight), table.tensors()[i].bytes()});
    end = weight.offset + weight.nbytes;
  }
  return pieces;
}

}  // namespace

SideWeights write_side_file(const WeightTable& weights, int descriptor, const std::string& name,
                            const std::string& path) {
  const auto write = [&](std::span<const std::byte> bytes) {
    if (!write_all(descriptor, bytes)) throw_user_error("cannot write '{}': {}", path, std::strerror(errno));
  };
  const std::vector<Piece> pieces = pieces_of(weights);
  std::vector<SafetensorsRow> rows;
  int64_t nbytes = 0;
  for (const Piece& piece : pieces) {
    rows.push_back(piece.row);
    nbytes += static_cast<int64_t>(piece.bytes.size());
  }
  const std::string head = artifact::safetensors_head(rows, "headrace.weights");
  write(std::as_bytes(std::span(head)));
  for (const Piece& piece : pieces) write(piece.bytes);
  const auto data_offset = static_cast<int64_t>(head.size());
  return {.file = {.name = name,
                   .nbytes = data_offset + nbytes,
                   .hash = artifact::file_content_hash(descriptor, path).value_or_throw()},
          .data_offset = data_offset};
}

}  // namespace headrace::plan
