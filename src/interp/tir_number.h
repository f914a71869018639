// Numbers of the tir interpreter: one cell a lane. Inner header of interp.
#pragma once

#include "ir/prim_expr.h"

namespace headrace::interp {

// An integer or bool extended to 64 bits, the bits of a float32 (float16 and bfloat16 are held as that) or a float64,
// the code of a narrow float.
using Cell = uint64_t;

// UserError when no cell holds the dtype.
void check_cell_dtype(DataType dtype);
[[noreturn]] void fail_to_compute(DataType dtype);
// Wraps an integer to the dtype's bits and extends it to 64 again.
Cell wrap(uint64_t value, DataType dtype);
Cell cell_of_float(double value, DataType dtype);
Cell cell_of_int(int64_t value, DataType dtype);

Cell binary(BinaryOp op, Cell a, Cell b, DataType dtype);
Cell cast(Cell value, DataType from, DataType to);
Cell reinterpret(Cell value, DataType from, DataType to);
// Computes an intrinsic of numbers. All `args` have the dtype `dtype`.
Cell intrinsic(Intrinsic intrinsic, const Cell* args, DataType dtype);

// Read and write one element in memory.
Cell read_element(const std::byte* at, DataType dtype);
void write_element(std::byte* at, Cell value, DataType dtype);

}  // namespace headrace::interp
