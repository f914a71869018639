/* headrace_run: runs the program "default" of the artifact that it is linked into, for clients that have nothing but
 * dlopen. Walks the tables; one allocation a run. */
#include "plan/static_main.h"

#include <headrace/c_api.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

extern const hr_main_program headrace_program __attribute__((visibility("hidden")));

static int32_t run_serially(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  return count > 0 ? body(env, closure, 0, count) : 0;
}

static uint64_t round_up(uint64_t size) { return (size + HR_ALIGNMENT - 1) / HR_ALIGNMENT * HR_ALIGNMENT; }

static void say(const HeadraceHost* host, const char* message) {
  if (host == NULL || host->message == NULL || host->message_size == 0) return;
  size_t length = strlen(message);
  if (length >= host->message_size) length = host->message_size - 1;
  memcpy(host->message, message, length);
  host->message[length] = 0;
}

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

static int check_tensors(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                         const HeadraceHost* host) {
  const hr_main_program* program = &headrace_program;
  if (n_in != program->num_inputs || n_out != program->num_outputs) {
    say(host, "wrong number of inputs or outputs");
    return HR_REASON_BAD_TENSOR;
  }
  for (int32_t i = 0; i < n_in + n_out; ++i) {
    const int is_input = i < n_in;
    if (fits(is_input ? in[i] : out[i - n_in], &program->entries[i])) continue;
    say(host, is_input ? "an input is not a contiguous CPU tensor of the program's dtype and shape"
                       : "an output is not a contiguous CPU tensor of the program's dtype and shape");
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

HR_EXPORT int headrace_run(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                           const HeadraceHost* host) {
  const hr_main_program* program = &headrace_program;
  if (program->needs_runtime) {
    say(host, "this file needs libheadrace_rt: it has external modules or weights beside it");
    return HR_REASON_NEEDS_RUNTIME;
  }
  const int checked = check_tensors(in, n_in, out, n_out, host);
  if (checked != HR_REASON_NONE) return checked;

  const int32_t workers = host != NULL && host->parallel_for != NULL && host->num_workers > 1 ? host->num_workers : 1;
  const uint64_t arena_size = round_up((uint64_t)program->arena_bytes);
  const uint64_t workspace_size = (uint64_t)program->workspace_bytes * (uint64_t)workers;
  const uint64_t tensors_size = round_up((uint64_t)program->num_entries * sizeof(DLTensor));
  const uint64_t args_size = round_up(((uint64_t)program->max_args + 1) * sizeof(DLTensor*));
  const uint64_t size = arena_size + workspace_size + tensors_size + args_size;
  char* memory = host != NULL ? host->allocate(host->context, size) : aligned_alloc(HR_ALIGNMENT, size);
  if (memory == NULL) {
    say(host, "out of memory");
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
  env.message = host != NULL ? host->message : NULL;
  env.message_size = host != NULL ? host->message_size : 0;
  env.host = host != NULL ? host->context : NULL;
  const int result = run_steps(&env, tensors, (DLTensor**)(memory + arena_size + workspace_size + tensors_size));
  if (host != NULL) {
    host->release(host->context, memory);
  } else {
    free(memory);
  }
  return result;
}
