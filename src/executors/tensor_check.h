// Checks a tensor of a caller against the description of an input or output.
#pragma once

#include <dlpack/dlpack.h>

#include "artifact/tensor_spec.h"
#include "executors/message.h"

namespace headrace::executors {

enum class Access : uint8_t {
  copied,  // the executor copies its elements into, or out of, memory of the program: any strides will do
  direct,  // a program reads or writes it in place: it must also be contiguous, and aligned to the size of an element
};

// Returns whether `tensor` is what `spec` describes, on the CPU. If not, writes to `message` the sentence that says why
// and what to do, which begins with `what`: "input 'x' has dtype ...".
bool check_tensor(std::string_view what, const artifact::TensorSpec& spec, const DLTensor& tensor, Access access,
                  Message& message) noexcept;
// Returns whether a program can read or write a tensor that it may copy in place: Access::direct.
bool is_direct(const artifact::TensorSpec& spec, const DLTensor& tensor) noexcept;
// Throws a UserError with that sentence for a tensor that is not what `spec` describes.
void require_tensor(std::string_view what, const artifact::TensorSpec& spec, const DLTensor& tensor, Access access);

}  // namespace headrace::executors
