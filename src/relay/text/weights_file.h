// The side file of the text form: the data of meta[relay.Constant][i] as a safetensors file.
//
// Tensor `relay.Constant.i` is item i, so that other programs can read and write the weights; `__metadata__` says
// {"format": "headrace.relay", "version": "1"}. The data starts at a multiple of 64 bytes, tensors of wide elements
// first, so that every element lies where its size wants it. Source: the format's page of the safetensors project.
#pragma once

#include <string>
#include <vector>

#include "tensor/ndarray.h"

namespace headrace::relay {

// Writes all of `weights` (PrintOptions::weights) to an open file, from where it stands. Equal weights give equal
// bytes. UserError naming `path`: the file cannot be written, or a dtype (int4 ...) that the format lacks.
void write_weights(int descriptor, const std::string& path, const std::vector<NDArray>& weights);

// What write_weights, or another program in that form, has written: for ParseOptions::weights. The tensors lie in the
// mapped file; one whose elements are not aligned is copied. UserError that says what is wrong with the file: it is
// missing, truncated, longer than its header says; a header that is none; a name other than relay.Constant.i, an i that
// is left out; a dtype, shape or place in the file that does not fit.
std::vector<NDArray> read_weights(const std::string& path);

}  // namespace headrace::relay
