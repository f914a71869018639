/* The code of the artifact that tests run: kernels as the compiler would emit them, weights, and a place for the
 * manifest, which the tests fill in (artifact_kit.h). */
#include <headrace/c_api.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Weight 0: w f32[5,8] at 0. Weight 1: b f32[5] at 192. */
typedef struct Weights {
  float w[5][8];
  float padding[8];
  float b[5];
} Weights;
__attribute__((section(".headrace.weights"), aligned(64), used)) static const Weights weights = {
    .w = {{1, 0, 0, 0, 0, 0, 0, 0},
          {0, 2, 0, 0, 0, 0, 0, 0},
          {1, 1, 1, 1, 1, 1, 1, 1},
          {0, 0, 0, 0, 0, 0, 0, -1},
          {.5f, .5f, 0, 0, 0, 0, 0, 0}},
    .b = {0, 1, -2, 3, .25f},
};

__asm__(
    ".pushsection .headrace.manifest,\"\",@progbits\n"
    ".ascii \"@@HEADRACE-MANIFEST@@\"\n"
    ".fill 65536,1,32\n"
    ".popsection\n");

typedef struct Dense {
  const float* x;
  const float* w;
  const float* b;
  float* y;
} Dense;

static int32_t dense_rows(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
  const Dense* d = closure;
  /* Goes through the workspace, so that two workers with one block would spoil each other's rows. */
  float* row = env->workspace;
  if (env->workspace_size < 5 * sizeof(float)) return 1;
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < 5; ++j) {
      row[j] = d->b[j];
      for (int k = 0; k < 8; ++k) row[j] += d->x[i * 8 + k] * d->w[j * 8 + k];
    }
    for (int j = 0; j < 5; ++j) d->y[i * 5 + j] = row[j] > 0 ? row[j] : 0;
  }
  return 0;
}

/* y[6,5] = relu(x[6,8] w[5,8]^T + b[5]) */
EXPORT int32_t toy_dense_relu(const hr_kernel_env* env, DLTensor* const* args) {
  Dense d = {args[0]->data, args[1]->data, args[2]->data, args[3]->data};
  return env->parallel_for(env, dense_rows, &d, args[0]->shape[0]);
}

/* z = x + y, of any shape, contiguous */
EXPORT int32_t toy_add(const hr_kernel_env* env, DLTensor* const* args) {
  (void)env;
  int64_t count = 1;
  for (int i = 0; i < args[2]->ndim; ++i) count *= args[2]->shape[i];
  const float* x = args[0]->data;
  const float* y = args[1]->data;
  float* z = args[2]->data;
  for (int64_t i = 0; i < count; ++i) z[i] = x[i] + y[i];
  return 0;
}

static int32_t fail_in_row_4(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
  (void)closure;
  if (begin <= 4 && 4 < end) {
    if (env->message != NULL) strncpy(env->message, "row 4 is out of bounds", env->message_size);
    return 7;
  }
  return 0;
}

EXPORT int32_t toy_fail(const hr_kernel_env* env, DLTensor* const* args) {
  (void)args;
  return env->parallel_for(env, fail_in_row_4, NULL, 6);
}

static int32_t serial(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count) {
  return count > 0 ? body(env, closure, 0, count) : 0;
}

/* The static main: the program "default" of artifact_kit.h. */
EXPORT int headrace_run(DLTensor* const* in, int32_t n_in, DLTensor* const* out, int32_t n_out,
                        const HeadraceHost* host) {
  if (n_in != 1 || n_out != 2) return HR_REASON_BAD_TENSOR;
  const uint64_t arena_size = 128;
  const int32_t workers = host != NULL && host->parallel_for != NULL ? host->num_workers : 1;
  const uint64_t size = arena_size + 64 * (uint64_t)workers;
  char* memory = host != NULL ? host->allocate(host->context, size) : aligned_alloc(64, size);
  if (memory == NULL) return HR_REASON_SYSTEM;
  hr_kernel_env env = {.size = sizeof env,
                       .version = HR_KERNEL_ABI_VERSION,
                       .workspace = memory + arena_size,
                       .workspace_size = 64,
                       .parallel_for = workers > 1 ? host->parallel_for : serial,
                       .num_workers = workers,
                       .message = host != NULL ? host->message : NULL,
                       .message_size = host != NULL ? host->message_size : 0,
                       .host = host != NULL ? host->context : NULL};
  DLTensor w = {.data = (void*)weights.w};
  DLTensor b = {.data = (void*)weights.b};
  DLTensor t = {.data = memory};
  DLTensor* dense_args[] = {in[0], &w, &b, &t};
  DLTensor* add_args[] = {&t, &t, out[0]};
  int32_t code = toy_dense_relu(&env, dense_args);
  if (code == 0) code = toy_add(&env, add_args);
  if (code == 0) memcpy(out[1]->data, in[0]->data, 6 * 8 * sizeof(float));
  if (host != NULL) {
    host->release(host->context, memory);
  } else {
    free(memory);
  }
  return code == 0 ? HR_REASON_NONE : HR_REASON_KERNEL_FAILED;
}
