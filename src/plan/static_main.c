/* headrace_run: runs the program "default" of the artifact that it is linked into, for clients that have nothing but
 * dlopen. Walks the tables; one allocation a run. __tvm_ffi_main: the same for programs that call functions as tvm-ffi
 * does. */
#include "plan/static_main.h"

#include <headrace/c_api.h>
#include <headrace/system_lib.h>
#include <stdarg.h>
#include <stddef.h>

/* Declares the functions of the C library that this file calls, and includes no header of it: the file is compiled for
 * machines whose headers are not installed, too. */
int snprintf(char* text, size_t size, const char* format, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char* text, size_t size, const char* format, va_list args) __attribute__((format(printf, 3, 0)));
void* aligned_alloc(size_t alignment, size_t size);
void* malloc(size_t size);
void free(void* memory);
void* memmove(void* target, const void* source, size_t size);
void* memset(void* memory, int byte, size_t size);

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

/* Writes behind what is there; what does not fit is cut. */
__attribute__((format(printf, 2, 3))) static void append(hr_main_message* rest, const char* format, ...) {
  if (rest->text == NULL || rest->size == 0) return;
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(rest->text, (size_t)rest->size, format, args);
  va_end(args);
  uint64_t used = length < 0 ? 0 : (uint64_t)length;
  if (used >= rest->size) used = rest->size - 1;
  rest->text += used;
  rest->size -= used;
}

/* "float32", "bool", "float32x4" */
static void append_dtype(hr_main_message* rest, DLDataType dtype) {
  static const char* const kinds[] = {"int", "uint", "float", "handle", "bfloat"};
  if (dtype.code == kDLBool && dtype.bits == 8) {
    append(rest, "bool");
  } else if (dtype.code < sizeof kinds / sizeof *kinds) {
    append(rest, "%s%d", kinds[dtype.code], dtype.bits);
  } else {
    append(rest, "the dtype of code %d and %d bits", dtype.code, dtype.bits);
  }
  if (dtype.lanes != 1) append(rest, "x%d", dtype.lanes);
}

/* "[1, 3]" */
static void append_numbers(hr_main_message* rest, const int64_t* numbers, int32_t count) {
  append(rest, "[");
  for (int32_t i = 0; i < count; ++i) append(rest, i == 0 ? "%lld" : ", %lld", (long long)numbers[i]);
  append(rest, "]");
}

static DLDataType dtype_of(const hr_main_entry* entry) {
  const DLDataType dtype = {entry->code, entry->bits, entry->lanes};
  return dtype;
}

static int64_t nbytes_of(const hr_main_entry* entry) {
  for (int32_t i = 0; i < entry->ndim; ++i) {
    if (entry->shape[i] == 0) return 0;
  }
  int64_t bits = (int64_t)entry->bits * entry->lanes;
  for (int32_t i = 0; i < entry->ndim; ++i) bits *= entry->shape[i];
  return (bits + 7) / 8;
}

/* Computed as numbers: the sum may lie behind the end of the address space, which no pointer may say. */
static void* start_of(const DLTensor* tensor) {
  return (void*)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
}

/* Whether the tensor's memory would go past the last address. */
static int is_past_end(const DLTensor* tensor, int64_t nbytes) {
  const uintptr_t data = (uintptr_t)tensor->data;
  return tensor->byte_offset > UINTPTR_MAX - data || (uintptr_t)nbytes > UINTPTR_MAX - data - tensor->byte_offset;
}

/* Faults of a tensor that cannot be an input or output; the order is that in which they are looked at. */
typedef enum hr_main_fault {
  HR_MAIN_FITS,
  HR_MAIN_NULL,
  HR_MAIN_DEVICE,
  HR_MAIN_DTYPE,
  HR_MAIN_RANK,
  HR_MAIN_NO_SHAPE,
  HR_MAIN_SHAPE,
  HR_MAIN_STRIDES,
  HR_MAIN_NO_MEMORY,
  HR_MAIN_PAST_END,
  HR_MAIN_UNALIGNED,
} hr_main_fault;

static int64_t alignment_of(const hr_main_entry* entry) { return entry->bits < 8 ? 1 : entry->bits / 8; }

/* Returns the fault of a tensor that should be contiguous, of the entry's dtype and shape, with memory aligned to its
 * element. */
static hr_main_fault fault_of(const DLTensor* tensor, const hr_main_entry* entry) {
  if (tensor == NULL) return HR_MAIN_NULL;
  if (tensor->device.device_type != kDLCPU || tensor->device.device_id != 0) return HR_MAIN_DEVICE;
  if (tensor->dtype.code != entry->code || tensor->dtype.bits != entry->bits || tensor->dtype.lanes != entry->lanes)
    return HR_MAIN_DTYPE;
  if (tensor->ndim != entry->ndim) return HR_MAIN_RANK;
  if (tensor->ndim > 0 && tensor->shape == NULL) return HR_MAIN_NO_SHAPE;
  for (int32_t i = 0; i < entry->ndim; ++i) {
    if (tensor->shape[i] != entry->shape[i]) return HR_MAIN_SHAPE;
  }
  const int64_t nbytes = nbytes_of(entry);
  if (nbytes == 0) return HR_MAIN_FITS;
  for (int32_t i = 0; tensor->strides != NULL && i < entry->ndim; ++i) {
    if (entry->shape[i] != 1 && tensor->strides[i] != entry->strides[i]) return HR_MAIN_STRIDES;
  }
  if (tensor->data == NULL) return HR_MAIN_NO_MEMORY;
  if (is_past_end(tensor, nbytes)) return HR_MAIN_PAST_END;
  return (uintptr_t)start_of(tensor) % (uintptr_t)alignment_of(entry) == 0 ? HR_MAIN_FITS : HR_MAIN_UNALIGNED;
}

static void append_device(hr_main_message* rest, DLDevice device) {
  const int type = (int)device.device_type, id = (int)device.device_id;
  if (type == kDLCPU) {
    append(rest, "it is on the device cpu(%d)", id);
  } else if (type == kDLCUDA) {
    append(rest, "it is on the device cuda(%d)", id);
  } else {
    append(rest, "it is on a device of DLPack's type %d", type);
  }
}

static void append_fault(hr_main_message* rest, hr_main_fault fault, const DLTensor* tensor,
                         const hr_main_entry* entry) {
  switch (fault) {
    case HR_MAIN_FITS:
      break;
    case HR_MAIN_NULL:
      append(rest, "it is NULL");
      break;
    case HR_MAIN_DEVICE:
      append_device(rest, tensor->device);
      break;
    case HR_MAIN_DTYPE:
      append(rest, "it is ");
      append_dtype(rest, tensor->dtype);
      break;
    case HR_MAIN_RANK:
      append(rest, "it has %d dimensions, not %d", (int)tensor->ndim, (int)entry->ndim);
      break;
    case HR_MAIN_NO_SHAPE:
      append(rest, "it has no shape (shape is NULL)");
      break;
    case HR_MAIN_SHAPE:
      append(rest, "its shape is ");
      append_numbers(rest, tensor->shape, tensor->ndim);
      break;
    case HR_MAIN_STRIDES:
      append(rest, "its strides are ");
      append_numbers(rest, tensor->strides, tensor->ndim);
      append(rest, ", not ");
      append_numbers(rest, entry->strides, entry->ndim);
      break;
    case HR_MAIN_NO_MEMORY:
      append(rest, "it has no memory (data is NULL)");
      break;
    case HR_MAIN_PAST_END:
      append(rest, "its %lld bytes go past the end of the address space", (long long)nbytes_of(entry));
      break;
    case HR_MAIN_UNALIGNED:
      append(rest, "it is not aligned to its element of %d bytes", (int)alignment_of(entry));
      break;
  }
}

/* Inputs and then outputs, as their entries are. */
typedef struct hr_main_ports {
  DLTensor* const* in;
  DLTensor* const* out;
} hr_main_ports;

static const DLTensor* port(hr_main_ports ports, int32_t i) {
  const int32_t n_in = headrace_program.num_inputs;
  return i < n_in ? ports.in[i] : ports.out[i - n_in];
}

/* "input 0" */
static void append_name(hr_main_message* rest, int32_t i) {
  const int32_t n_in = headrace_program.num_inputs;
  append(rest, i < n_in ? "input %d" : "output %d", (int)(i < n_in ? i : i - n_in));
}

/* Whether two ports have a byte in common. */
static int overlap(hr_main_ports ports, int32_t i, int32_t k) {
  const int64_t nbytes_i = nbytes_of(&headrace_program.entries[i]), nbytes_k = nbytes_of(&headrace_program.entries[k]);
  if (nbytes_i == 0 || nbytes_k == 0) return 0;
  const uintptr_t begin_i = (uintptr_t)start_of(port(ports, i)), begin_k = (uintptr_t)start_of(port(ports, k));
  return begin_i < begin_k + (uintptr_t)nbytes_k && begin_k < begin_i + (uintptr_t)nbytes_i;
}

/* Kernels are compiled for memory that is apart. */
static int check_apart(hr_main_ports ports, hr_main_message message) {
  const int32_t n_in = headrace_program.num_inputs, n = n_in + headrace_program.num_outputs;
  for (int32_t i = n_in; i < n; ++i) {
    for (int32_t k = 0; k < i; ++k) {
      if (!overlap(ports, i, k)) continue;
      append_name(&message, i);
      append(&message, " shares memory with ");
      append_name(&message, k);
      append(&message, "; give it memory of its own");
      return HR_REASON_BAD_TENSOR;
    }
  }
  return HR_REASON_NONE;
}

static int check_tensors(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                         hr_main_message message) {
  const hr_main_program* program = &headrace_program;
  if (n_in != program->num_inputs || n_out != program->num_outputs) {
    SAY(message, "the program has %d inputs and %d outputs; it got %d and %d", program->num_inputs,
        program->num_outputs, n_in, n_out);
    return HR_REASON_BAD_TENSOR;
  }
  if ((n_in > 0 && in == NULL) || (n_out > 0 && out == NULL)) {
    SAY(message, "the list of %s is NULL", n_in > 0 && in == NULL ? "inputs" : "outputs");
    return HR_REASON_BAD_TENSOR;
  }
  const hr_main_ports ports = {in, out};
  for (int32_t i = 0; i < n_in + n_out; ++i) {
    const hr_main_entry* entry = &program->entries[i];
    const hr_main_fault fault = fault_of(port(ports, i), entry);
    if (fault == HR_MAIN_FITS) continue;
    append_name(&message, i);
    append(&message, " must be a contiguous CPU tensor ");
    append_dtype(&message, dtype_of(entry));
    append_numbers(&message, entry->shape, entry->ndim);
    append(&message, "; ");
    append_fault(&message, fault, port(ports, i), entry);
    return HR_REASON_BAD_TENSOR;
  }
  return check_apart(ports, message);
}

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
  const int host_allocates = host != NULL && host->allocate != NULL && host->release != NULL;
  char* memory = host_allocates ? host->allocate(host->context, size) : aligned_alloc(HR_ALIGNMENT, size);
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
  if (host_allocates) {
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
  if (value->type_index != HR_TYPE_TENSOR || value->v.pointer == NULL) return NULL;
  return (DLTensor*)((char*)value->v.pointer + HR_OBJECT_HEADER_SIZE);
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
  if (n > 0 && args == NULL) {
    SAY(message, "the list of arguments is NULL");
    return "TypeError";
  }
  for (int32_t i = 0; i < n; ++i) {
    tensors[i] = tensor_of(&args[i]);
    if (tensors[i] != NULL) continue;
    SAY(message, "argument %d is not a tensor", i);
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
  if (result != NULL) memset(result, 0, sizeof *result);
  return 0;
}
