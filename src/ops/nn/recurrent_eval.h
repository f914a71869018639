// The evaluation of recurrent layers, which defines them. Private to ops/nn/.
#pragma once

#include "ops/nn/recurrent.h"

namespace headrace::ops {

// Evaluates nn.lstm, nn.gru or nn.rnn. Throws UserError for a sequence length outside [0, T].
std::vector<NDArray> eval_recurrent_layer(RecurrentCell cell, const EvalInput& input);
// Evaluates nn.recurrent_steps, with the same errors.
std::vector<NDArray> eval_recurrent_steps(const EvalInput& input);

}  // namespace headrace::ops
