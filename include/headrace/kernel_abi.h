/* The kernel ABI: how a host calls compiled code. Standalone C; nothing else of Headrace is needed to call or to write
 * a kernel.
 *
 * A kernel is `int32_t f(const hr_kernel_env* env, DLTensor* const* args)`. It is destination-passing: `args` are its
 * inputs, then its outputs, all allocated by the caller. It keeps no state between calls, is re-entrant and may be
 * called by several threads at once. It returns 0, or another number after writing a sentence into `env->message`.
 *
 * What a kernel may assume of its arguments: `byte_offset` is 0; shape, dtype and strides are those it was compiled
 * for, with `strides` never NULL but for scalars; `data` is 64-byte aligned for weights, and aligned to the element for
 * all others: the inputs and outputs of a program, and intermediate values, which may be parts of one storage. It must
 * not write to its inputs.
 *
 * Version 1. A host of version v runs kernels of every version from HR_KERNEL_ABI_OLDEST to v: fields are only ever
 * appended, and `size` says how many bytes of hr_kernel_env the host filled in. */
#ifndef HEADRACE_KERNEL_ABI_H_
#define HEADRACE_KERNEL_ABI_H_

#include <dlpack/dlpack.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HR_KERNEL_ABI_VERSION 1u
#define HR_KERNEL_ABI_OLDEST 1u

/* Alignment in bytes of intermediate values, of weights and of workspaces. */
#define HR_ALIGNMENT 64

typedef struct hr_kernel_env hr_kernel_env;

typedef int32_t (*hr_kernel)(const hr_kernel_env* env, DLTensor* const* args);

/* A part of a parallel loop: iterations begin .. end-1. `env` is the worker's own. Returns 0, or another number after
 * writing a sentence into `env->message`. Iterations are independent: results must not depend on how they are split. */
typedef int32_t (*hr_parallel_body)(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end);

/* Runs `body` over 0 .. count-1, split into contiguous parts over at most `env->num_workers` workers, and returns when
 * all have ended. The result is 0, or that of the failing worker with the lowest index, whose message is then in
 * `env->message`. Called from within a body it runs serially. */
typedef int32_t (*hr_parallel_for)(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count);

/* Puts device code on `env->stream`. `kernel` names a function of the artifact's device module. */
typedef int32_t (*hr_launch)(const hr_kernel_env* env, const char* kernel, const uint32_t grid[3],
                             const uint32_t block[3], uint32_t shared_bytes, void* const* args, int32_t num_args);

struct hr_kernel_env {
  uint32_t size;    /* bytes of this struct that the host filled in */
  uint32_t version; /* HR_KERNEL_ABI_VERSION of the host */

  /* Scratch memory of the calling worker. In the env that a kernel is called with (worker 0) it is the start of
   * num_workers such blocks, one after the other; hr_worker_env picks a worker's. Its content is undefined at entry. */
  void* workspace;
  uint64_t workspace_size; /* bytes of one worker's block; a multiple of HR_ALIGNMENT */

  hr_parallel_for parallel_for; /* never NULL */
  hr_launch launch;             /* NULL on a host without devices */
  void* stream;                 /* the device stream in use, or NULL */

  int32_t worker_index; /* 0 .. num_workers-1 */
  int32_t num_workers;  /* at least 1 */

  char* message;         /* buffer for the sentence of a failure, NUL-terminated; NULL: nobody reads it */
  uint64_t message_size; /* bytes of that buffer */

  void* host; /* the host's own; kernels don't touch it */
};

/* The env of worker `index`, made from the env that a kernel was called with. */
static inline hr_kernel_env hr_worker_env(const hr_kernel_env* root, int32_t index) {
  hr_kernel_env env = *root;
  env.workspace = (char*)root->workspace + (uint64_t)(index - root->worker_index) * root->workspace_size;
  env.worker_index = index;
  return env;
}

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_KERNEL_ABI_H_ */
