// headrace profile --machine: what this machine can do, probed, beside the row of the table that estimates count with.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::tools {

// Probes the machine, all of whose memory bandwidth that many threads take, and prints the numbers. Returns the exit
// code.
int profile_machine(int threads, const Common& common);

}  // namespace headrace::tools
