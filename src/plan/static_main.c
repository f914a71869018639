/* headrace_run: runs the program "default" of the artifact that it is linked into, for clients that have nothing but
 * dlopen. Walks the tables; one allocation a run. __tvm_ffi_main: the same for programs that call functions as tvm-ffi
 * does. */
#include "plan/static_main.h"

#include <headrace/c_api.h>
#include <headrace/system_lib.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const hr_main_program headrace_program __attribute__((visibility("hidden")));

static int32_t run_serially(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  return count > 0 ? body(env, closure, 0, count) : 0;
}

static uint64_t round_up(uint64_t size) { return (size + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT; }

/* Where the sentence of a failure goes; `text` may be NULL. */
typedef struct hr_main_message {
  char* text;
  uint64_t size;
} hr_main_message;

#define SAY(message, ...) \
  ((message).text != NULL ? (void)snprintf((message).text, (size_t)(message).size, __VA_ARGS__) : (void)0)

/* A contiguous CPU tensor of the entry's dtype and shape, with memory aligned to its element. */
static int fits(const DLTensor* tensor, const hr_main_entry* entry) {
  if (tensor == NULL || tensor->device.device_type != kDLCPU || tensor->ndim != entry->ndim) return 0;
  if (tensor->dtype.code != entry->code || tensor->dtype.bits != entry->bits || tensor->dtype.lanes != entry->lanes)
    return 0;
  int64_t count = 1;
  for (int32_t i = 0; i < entry->ndim; ++i) {
    if (tensor->shape[i] != entry->shape[i]) return 0;
    count *= entry->shape[i];
  }
  if (count == 0) return 1;
  for (int32_t i = 0; tensor->strides != NULL && i < entry->ndim; ++i) {
    if (entry->shape[i] != 1 && tensor->strides[i] != entry->strides[i]) return 0;
  }
  const uintptr_t element = (uintptr_t)(entry->bits / 8 == 0 ? 1 : entry->bits / 8);
  return tensor->data != NULL && ((uintptr_t)tensor->data + tensor->byte_offset) % element == 0;
}

/* "float32[1, 3]", cut where it does not fit. */
static void describe(const hr_main_entry* entry, char* text, size_t size) {
  static const char* const kinds[] = {"int", "uint", "float", "handle", "bfloat"};
  const char* kind = entry->code < sizeof kinds / sizeof *kinds ? kinds[entry->code] : "dtype";
  size_t used = (size_t)(entry->code == kDLBool ? snprintf(text, size, "bool[")
                                                : snprintf(text, size, "%s%d[", kind, entry->bits));
  for (int32_t i = 0; i < entry->ndim && used < size; ++i)
    used += (size_t)snprintf(text + used, size - used, i == 0 ? "%lld" : ", %lld", (long long)entry->shape[i]);
  if (used < size) (void)snprintf(text + used, size - used, "]");
}

static int check_tensors(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                         hr_main_message message) {
  const hr_main_program* program = &headrace_program;
  if (n_in != program->num_inputs || n_out != program->num_outputs) {
    SAY(message, "the program has %d inputs and %d outputs; it got %d and %d", program->num_inputs,
        program->num_outputs, n_in, n_out);
    return HR_REASON_BAD_TENSOR;
  }
  for (int32_t i = 0; i < n_in + n_out; ++i) {
    const int is_input = i < n_in;
    if (fits(is_input ? in[i] : out[i - n_in], &program->entries[i])) continue;
    char expected[160];
    describe(&program->entries[i], expected, sizeof expected);
    SAY(message, "%s %d must be a contiguous CPU tensor %s", is_input ? "input" : "output", is_input ? i : i - n_in,
        expected);
    return HR_REASON_BAD_TENSOR;
  }
  return HR_REASON_NONE;
}

static void* start_of(const DLTensor* tensor) { return (char*)tensor->data + tensor->byte_offset; }

static void make_tensors(DLTensor* tensors, DLTensor* const* in, DLTensor* const* out, char* arena) {
  const hr_main_program* program = &headrace_program;
  for (int32_t i = 0; i < program->num_entries; ++i) {
    const hr_main_entry* entry = &program->entries[i];
    char* base = arena;
    if (entry->place == HR_MAIN_WEIGHT) base = (char*)program->weights;
    if (entry->place == HR_MAIN_INPUT) base = start_of(in[entry->index]);
    if (entry->place == HR_MAIN_OUTPUT) base = start_of(out[entry->index]);
    tensors[i].data = base + entry->offset;
    tensors[i].device.device_type = kDLCPU;
    tensors[i].device.device_id = 0;
    tensors[i].ndim = entry->ndim;
    tensors[i].dtype.code = entry->code;
    tensors[i].dtype.bits = entry->bits;
    tensors[i].dtype.lanes = entry->lanes;
    tensors[i].shape = (int64_t*)entry->shape;
    tensors[i].strides = (int64_t*)entry->strides;
    tensors[i].byte_offset = 0;
  }
}

static int run_steps(const hr_kernel_env* env, DLTensor* tensors, DLTensor** args) {
  const hr_main_program* program = &headrace_program;
  for (int32_t i = 0; i < program->num_steps; ++i) {
    const hr_main_step* step = &program->steps[i];
    for (int32_t k = 0; k < step->num_args; ++k) args[k] = &tensors[step->args[k]];
    if (step->kernel == NULL) {
      if (step->nbytes > 0) memmove(args[1]->data, args[0]->data, (size_t)step->nbytes);
    } else if (step->kernel(env, args) != 0) {
      return HR_REASON_KERNEL_FAILED;
    }
  }
  return HR_REASON_NONE;
}

static int run(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out, const HeadraceHost* host,
               hr_main_message message) {
  const hr_main_program* program = &headrace_program;
  if (program->needs_runtime != NULL) {
    SAY(message, "%s", program->needs_runtime);
    return HR_REASON_NEEDS_RUNTIME;
  }
  const int checked = check_tensors(in, n_in, out, n_out, message);
  if (checked != HR_REASON_NONE) return checked;

  const int32_t workers = host != NULL && host->parallel_for != NULL && host->num_workers > 1 ? host->num_workers : 1;
  const uint64_t arena_size = round_up((uint64_t)program->arena_bytes);
  const uint64_t workspace_size = (uint64_t)program->workspace_bytes * (uint64_t)workers;
  const uint64_t tensors_size = round_up((uint64_t)program->num_entries * sizeof(DLTensor));
  const uint64_t args_size = round_up(((uint64_t)program->max_args + 1) * sizeof(DLTensor*));
  const uint64_t size = arena_size + workspace_size + tensors_size + args_size;
  char* memory = host != NULL ? host->allocate(host->context, size) : aligned_alloc(HR_ALIGNMENT, size);
  if (memory == NULL) {
    SAY(message, "out of memory: a run takes %llu bytes", (unsigned long long)size);
    return HR_REASON_SYSTEM;
  }
  DLTensor* tensors = (DLTensor*)(memory + arena_size + workspace_size);
  make_tensors(tensors, in, out, memory);
  hr_kernel_env env;
  memset(&env, 0, sizeof env);
  env.size = sizeof env;
  env.version = HR_KERNEL_ABI_VERSION;
  env.workspace = memory + arena_size;
  env.workspace_size = (uint64_t)program->workspace_bytes;
  env.parallel_for = workers > 1 ? host->parallel_for : run_serially;
  env.num_workers = workers;
  env.message = message.text;
  env.message_size = message.size;
  env.host = host != NULL ? host->context : NULL;
  const int result = run_steps(&env, tensors, (DLTensor**)(memory + arena_size + workspace_size + tensors_size));
  if (host != NULL) {
    host->release(host->context, memory);
  } else {
    free(memory);
  }
  return result;
}

HR_EXPORT int headrace_run(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                           const HeadraceHost* host) {
  hr_main_message message = {NULL, 0};
  if (host != NULL && host->message_size > 0) message = (hr_main_message){host->message, host->message_size};
  return run(in, n_in, out, n_out, host, message);
}

/* ---- tvm-ffi ----------------------------------------------------------------------------------------------------
 * f(handle, args, n, result): inputs, then outputs, tensors of the caller's; no result. 0, or -1 with the error in the
 * thread's state of whoever is there to keep it: both functions are weak, since neither library is needed to run. */
extern void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* message) __attribute__((weak));
#pragma weak hr_set_function_error

/* Their addresses lie in data (volatile: read from there), for code that took them would have to name the global offset
 * table, which check_object (codegen/object_file.h) refuses. */
static void (*volatile const set_error_of_tvm_ffi)(const char*, const char*) = TVMFFIErrorSetRaisedFromCStr;
static void (*volatile const set_error_of_headrace)(const char*) = hr_set_function_error;

static int32_t raise(const char* kind, const char* message) {
  void (*const tvm_ffi)(const char*, const char*) = set_error_of_tvm_ffi;
  void (*const headrace)(const char*) = set_error_of_headrace;
  if (tvm_ffi != NULL) tvm_ffi(kind, message);
  if (headrace != NULL) headrace(message);
  return -1;
}

/* The tensor in an argument; NULL when it is none. */
static DLTensor* tensor_of(const hr_value* value) {
  if (value->type_index == HR_TYPE_DLTENSOR) return value->v.pointer;
  if (value->type_index == HR_TYPE_TENSOR) return (DLTensor*)((char*)value->v.pointer + HR_OBJECT_HEADER_SIZE);
  return NULL;
}

/* The kind of what is wrong with the arguments, which `message` then tells; NULL when they are tensors, now in
 * `tensors`, as many as the program has. */
static const char* read_arguments(const hr_value* args, int32_t n, DLTensor** tensors, hr_main_message message) {
  const hr_main_program* program = &headrace_program;
  const int32_t expected = program->num_inputs + program->num_outputs;
  if (n != expected) {
    SAY(message, "expected %d arguments, %d inputs and then %d outputs, got %d", expected, program->num_inputs,
        program->num_outputs, n);
    return "TypeError";
  }
  for (int32_t i = 0; i < n; ++i) {
    tensors[i] = tensor_of(&args[i]);
    if (tensors[i] != NULL) continue;
    SAY(message, "argument %d is no tensor", i);
    return "TypeError";
  }
  return NULL;
}

HR_EXPORT int32_t __tvm_ffi_main(void* handle, const hr_value* args, int32_t n, hr_value* result) {
  (void)handle;
  const hr_main_program* program = &headrace_program;
  if (program->needs_runtime != NULL) return raise("RuntimeError", program->needs_runtime);
  char text[512] = "a kernel failed without saying why";
  const hr_main_message message = {text, sizeof text};
  const size_t count = (size_t)program->num_inputs + (size_t)program->num_outputs;
  DLTensor** tensors = malloc((count + 1) * sizeof *tensors);
  if (tensors == NULL) return raise("RuntimeError", "out of memory");
  const char* problem = read_arguments(args, n, tensors, message);
  if (problem == NULL) {
    const int reason =
        run(tensors, program->num_inputs, tensors + program->num_inputs, program->num_outputs, NULL, message);
    if (reason != HR_REASON_NONE) problem = reason == HR_REASON_BAD_TENSOR ? "ValueError" : "RuntimeError";
  }
  free(tensors);
  if (problem != NULL) return raise(problem, text);
  memset(result, 0, sizeof *result);
  return 0;
}
