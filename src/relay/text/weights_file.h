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

// Writes all of `weights` (PrintOptions::weights) to an open file at its current offset. Equal weights give equal
// bytes. UserError naming `path`: the file cannot be written, or the format lacks a dtype (int4 ...).
void write_weights(int descriptor, const std::string& path, const std::vector<NDArray>& weights);

// Reads a file that write_weights, or another program, has written, for ParseOptions::weights. The tensors lie in the
// mapped file; one whose elements are not aligned is copied. UserError: the file is missing, truncated or longer than
// its header says; the header is invalid; a name is not relay.Constant.i, or an i is missing; a dtype, shape or offset
// does not fit.
std::vector<NDArray> read_weights(const std::string& path);

}  // namespace headrace::relay
