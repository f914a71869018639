/* Running artifacts from C: the interface of libheadrace_rt. Standalone C.
 *
 *     hr_artifact* artifact; hr_executor* executor;
 *     hr_artifact_open("model.so", &artifact);
 *     hr_executor_create(artifact, NULL, NULL, &executor);    // program "default", its default thread count
 *     hr_executor_set_input(executor, 0, &x);                 // x: a DLTensor
 *     hr_executor_run(executor);
 *     hr_executor_get_output(executor, 0, &y);                // y: a view, valid until the next run
 *
 * Every function that can fail returns an hr_status; hr_last_error() tells the calling thread more. Nothing throws,
 * nothing aborts. An artifact may be used by several threads at once; an executor by one at a time.
 *
 * The end of this file is another way in, without this library: headrace_run, for plain dlopen clients.
 *
 * Version 3 (HR_C_API_VERSION). Functions and fields are only ever added; structs that a caller fills in start with
 * their size. */
#ifndef HEADRACE_C_API_H_
#define HEADRACE_C_API_H_

#include <dlpack/dlpack.h>
#include <headrace/kernel_abi.h>
#include <headrace/reason.h>
#include <headrace/status.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HR_NOEXCEPT noexcept
extern "C" {
#else
#define HR_NOEXCEPT
#endif

#define HR_C_API_VERSION 3u
#define HR_EXPORT __attribute__((visibility("default")))

/* Fields that are not known are empty strings, never NULL. */
typedef struct hr_error {
  hr_status code;
  hr_reason reason;
  const char* message; /* the fault, and what to do */
  const char* op;      /* operator, step or tensor it is about */
  const char* span;    /* place in the model */
  const char* backend; /* backend that refused */
} hr_error;

typedef struct hr_tensor_info {
  const char* name;
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape; /* the largest, where only a run tells */
} hr_tensor_info;

typedef struct hr_executor_options {
  uint32_t size;   /* sizeof(hr_executor_options) */
  int32_t threads; /* 0: one for each of `cpus`, else the artifact's default */
  /* Since version 2. Processors for threads of the executor's own, as the system counts them, each named once; the
   * calling thread is not moved. NULL: the executor shares the threads of all executors of the process that have as
   * many. */
  const int32_t* cpus;
  int32_t num_cpus;
  /* Since version 2. What happens to a region of another backend where that is missing, or fails. */
  int32_t fallback; /* an hr_fallback_mode */
  /* Since version 3. How long the code of a region of another backend may take in one run, in seconds: one that takes
   * longer has failed, and is not called again. 0: any time. Otherwise each region works on copies of its tensors, in a
   * thread of its own. */
  double region_timeout_seconds;
} hr_executor_options;
/* 0: the region's native form runs instead, if the file has one. 1: making the executor, or the run, fails. */
typedef enum hr_fallback_mode { HR_FALLBACK_NATIVE = 0, HR_FALLBACK_NONE = 1 } hr_fallback_mode;
#define HR_EXECUTOR_OPTIONS_SIZE_1 8u /* the size in version 1 */
#define HR_EXECUTOR_OPTIONS_SIZE_2 ((uint32_t)offsetof(hr_executor_options, region_timeout_seconds))

/* A region that runs natively from some time on. Strings are valid until the executor is destroyed. */
typedef struct hr_fallback {
  const char* region;
  const char* backend;
  hr_reason reason;    /* HR_REASON_BACKEND_MISSING or HR_REASON_BACKEND_FAILED */
  const char* message; /* the backend's message */
  uint64_t run;        /* the run in which it failed, counted from 1; 0: before the first */
} hr_fallback;

typedef struct hr_artifact hr_artifact;
typedef struct hr_executor hr_executor;

/* Returns HR_C_API_VERSION of the library. */
HR_EXPORT uint32_t hr_c_api_version(void) HR_NOEXCEPT;

/* Returns the last failure of the calling thread; valid until that thread's next failing call. */
HR_EXPORT const hr_error* hr_last_error(void) HR_NOEXCEPT;

/* Opens and verifies a file. Do not change the file in place while it is open (replacing it by a rename is safe). */
HR_EXPORT hr_status hr_artifact_open(const char* path, hr_artifact** artifact) HR_NOEXCEPT;
/* Closes an artifact; executors that were made from it stay usable. NULL is allowed. */
HR_EXPORT void hr_artifact_close(hr_artifact* artifact) HR_NOEXCEPT;

/* Describe the content of the file. Strings and shapes are valid until the artifact is closed. `program` is a name;
 * NULL: "default". Counts are output parameters, so that every function reports errors in the same way. */
HR_EXPORT hr_status hr_artifact_num_programs(const hr_artifact* artifact, int32_t* count) HR_NOEXCEPT;
HR_EXPORT hr_status hr_artifact_program_name(const hr_artifact* artifact, int32_t index, const char** name) HR_NOEXCEPT;
HR_EXPORT hr_status hr_artifact_num_inputs(const hr_artifact* artifact, const char* program,
                                           int32_t* count) HR_NOEXCEPT;
HR_EXPORT hr_status hr_artifact_num_outputs(const hr_artifact* artifact, const char* program,
                                            int32_t* count) HR_NOEXCEPT;
HR_EXPORT hr_status hr_artifact_input_info(const hr_artifact* artifact, const char* program, int32_t index,
                                           hr_tensor_info* info) HR_NOEXCEPT;
HR_EXPORT hr_status hr_artifact_output_info(const hr_artifact* artifact, const char* program, int32_t index,
                                            hr_tensor_info* info) HR_NOEXCEPT;

/* Makes an executor, which owns the memory of one run at a time. `options` may be NULL. */
HR_EXPORT hr_status hr_executor_create(hr_artifact* artifact, const char* program, const hr_executor_options* options,
                                       hr_executor** executor) HR_NOEXCEPT;
HR_EXPORT void hr_executor_destroy(hr_executor* executor) HR_NOEXCEPT;

/* Copies `tensor` into the executor. It must be in CPU memory (device 0) with the program's dtype and shape; any
 * strides and alignment. A malformed tensor (a NULL, a rank, device, dtype or strides that it cannot have) is HR_USER
 * with HR_REASON_BAD_TENSOR. */
HR_EXPORT hr_status hr_executor_set_input(hr_executor* executor, int32_t index, const DLTensor* tensor) HR_NOEXCEPT;
/* Makes the program read `tensor` or write to it directly, in this and later runs, until set again. The memory is the
 * caller's and must outlive those runs; it must be contiguous and aligned to its element. An output must share no
 * memory with an input or another output: hr_executor_run refuses that (HR_REASON_BAD_TENSOR). */
HR_EXPORT hr_status hr_executor_set_input_zero_copy(hr_executor* executor, int32_t index,
                                                    const DLTensor* tensor) HR_NOEXCEPT;
HR_EXPORT hr_status hr_executor_set_output_zero_copy(hr_executor* executor, int32_t index,
                                                     const DLTensor* tensor) HR_NOEXCEPT;

/* Runs the program on the inputs that were set; inputs stay set. */
HR_EXPORT hr_status hr_executor_run(hr_executor* executor) HR_NOEXCEPT;

/* Gives a view of output `index`: written by the last run, overwritten by the next, invalid after the executor is
 * destroyed. HR_USAGE until a run has succeeded, and again until the next one after a run that failed or after memory
 * was set for the output. For an output whose size depends on data (NonZero, for example), hr_artifact_output_info and
 * the memory for hr_executor_set_output_zero_copy have the largest possible size; the view has the size of the last
 * run, dense. */
HR_EXPORT hr_status hr_executor_get_output(const hr_executor* executor, int32_t index, DLTensor* view) HR_NOEXCEPT;

/* Since version 2. Loads a backend from a shared library that answers headrace/backend_abi.h, for the artifacts that
 * are opened later; a library that was loaded before changes nothing. HR_MISSING_DEPENDENCY when it, or a library that
 * it needs, is not there. */
HR_EXPORT hr_status hr_load_backend(const char* path) HR_NOEXCEPT;

/* Since version 2. Describe the regions that have fallen back, in the order in which they did. */
HR_EXPORT hr_status hr_executor_num_fallbacks(const hr_executor* executor, int32_t* count) HR_NOEXCEPT;
HR_EXPORT hr_status hr_executor_get_fallback(const hr_executor* executor, int32_t index,
                                             hr_fallback* fallback) HR_NOEXCEPT;

/* ---- plain dlopen clients --------------------------------------------------------------------------------------
 * Every artifact exports `headrace_run` (HR_RUN_SYMBOL), which runs the program named "default". The client takes the
 * file on trust: dlopen does not verify it. Tensors are on device 0 of type kDLCPU, contiguous, of the dtype and shape
 * the program has; outputs are allocated by the caller and share no memory with inputs or with each other. Returns
 * HR_REASON_NONE, HR_REASON_NEEDS_RUNTIME when the program needs libheadrace_rt (external modules, weights in a side
 * file, outputs of a data-dependent size, the VM), or another hr_reason. */
typedef struct HeadraceHost {
  uint32_t size;    /* sizeof(HeadraceHost) */
  uint32_t version; /* HR_KERNEL_ABI_VERSION */
  /* Returns `bytes` bytes aligned to HR_ALIGNMENT, or NULL. Where one of the two is NULL: malloc and free. */
  void* (*allocate)(void* context, uint64_t bytes);
  void (*release)(void* context, void* memory);
  hr_parallel_for parallel_for; /* finds `context` in env->host; NULL: one thread */
  int32_t num_workers;          /* at most this many workers run a body; 1 when parallel_for is NULL */
  void* context;
  char* message; /* receives the sentence of a failure; may be NULL */
  uint64_t message_size;
} HeadraceHost;

#define HR_RUN_SYMBOL "headrace_run"
/* The type of headrace_run. A NULL `host` means malloc, one thread, no message. */
typedef int (*headrace_run_function)(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                                     const HeadraceHost* host);

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_C_API_H_ */
