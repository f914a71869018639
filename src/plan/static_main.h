/* The tables that the static main of an artifact walks, and nothing else: plain C, compiled into every artifact.
 * static_main_tables.cc writes them as data; static_main.c is the code. */
#ifndef HEADRACE_PLAN_STATIC_MAIN_H_
#define HEADRACE_PLAN_STATIC_MAIN_H_

#include <headrace/kernel_abi.h>
#include <stdint.h>

/* Where a tensor's memory starts: the numbers of artifact::Place. */
enum { HR_MAIN_ARENA = 0, HR_MAIN_WEIGHT = 1, HR_MAIN_INPUT = 2, HR_MAIN_OUTPUT = 3 };

typedef struct hr_main_entry {
  const int64_t* shape;
  const int64_t* strides;
  int64_t offset; /* bytes from the start of the arena, of the weights, or of the input or output */
  int32_t place;
  int32_t index; /* which input or output */
  int32_t ndim;
  uint8_t code; /* dtype */
  uint8_t bits;
  uint16_t lanes;
} hr_main_entry;

typedef struct hr_main_step {
  hr_kernel kernel; /* NULL: a copy of `nbytes` bytes from the first argument to the second */
  int64_t nbytes;
  const int32_t* args; /* entries */
  int32_t num_args;
  int32_t reserved;
} hr_main_step;

typedef struct hr_main_program {
  const hr_main_entry* entries; /* those of the inputs, then those of the outputs, then the others */
  const hr_main_step* steps;
  const char* weights;
  int64_t arena_bytes;
  int64_t workspace_bytes; /* workspace per worker */
  int32_t num_inputs;
  int32_t num_outputs;
  int32_t num_entries;
  int32_t num_steps;
  int32_t max_args; /* arguments per step */
  int32_t reserved;
  const char* needs_runtime; /* a sentence that says why the program is not for bare clients; NULL: it is */
} hr_main_program;

#endif /* HEADRACE_PLAN_STATIC_MAIN_H_ */
