/* Kernels, written by Headrace. Each is called as headrace/kernel_abi.h says: its inputs, then its outputs. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numbers are rounded after every operation: no compiler joins a product and a sum. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#endif

#ifndef HEADRACE_KERNEL_ABI_H_ /* else that header came before */
#define HEADRACE_KERNEL_ABI_H_
typedef struct {
  int32_t device_type, device_id;
} DLDevice;
typedef struct {
  uint8_t code, bits;
  uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct hr_kernel_env hr_kernel_env;
typedef int32_t (*hr_parallel_body)(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end);
struct hr_kernel_env {
  uint32_t size, version;
  void* workspace;
  uint64_t workspace_size;
  int32_t (*parallel_for)(const hr_kernel_env* env, hr_parallel_body body, void* closure, int64_t count);
  int32_t (*launch)(const hr_kernel_env* env, const char* kernel, const uint32_t grid[3], const uint32_t block[3],
                    uint32_t shared_bytes, void* const* args, int32_t num_args);
  void* stream;
  int32_t worker_index, num_workers;
  char* message;
  uint64_t message_size;
  void* host;
};
#endif

static inline float hr_max_f32(float a, float b) { return b != b || b > a ? b : a; }

static inline uint32_t hr_bits_f32(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof(bits));
  return bits;
}

static inline float hr_from_bits_f32(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof(x));
  return x;
}

static inline float hr_from_bits_f16(uint16_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, size = (uint32_t)(bits & 0x7fffu) << 13;
  if (size >= 0x7c00u << 13) return hr_from_bits_f32(sign | size | 0x7f800000u);
  return hr_from_bits_f32(sign | hr_bits_f32(hr_from_bits_f32(size) * 0x1p112f));
}

/* To the nearest float16, ties to even: the exponent is rebiased by 15 - 127, 13 bits are rounded off; subnormal
 * ones are aligned by adding 0.5. */
static inline uint16_t hr_bits_f16(float x) {
  const uint32_t bits = hr_bits_f32(x), sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
  if (size >= 143u << 23) return (uint16_t)(sign | 0x7c00u);
  if (size < 113u << 23) return (uint16_t)(sign | (hr_bits_f32(hr_from_bits_f32(size) + 0.5f) - (126u << 23)));
  return (uint16_t)(sign | ((size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13));
}

static inline float hr_round_f16(float x) { return hr_from_bits_f16(hr_bits_f16(x)); }

/* To float, rounded to odd: rounding that once more to 16 bits gives what rounding the double gives. */
static inline float hr_odd_f64(double x) {
  const float nearest = (float)x;
  if (x != x || (double)nearest == x) return nearest;
  return hr_from_bits_f32((hr_bits_f32(nearest) - (fabs((double)nearest) > fabs(x))) | 1u);
}

static inline float hr_min_f32(float a, float b) { return b != b || b < a ? b : a; }

static inline float hr_tanh_f32(float x) {
  const float t = hr_min_f32(hr_max_f32(fabsf(x) + fabsf(x), -104.0f), 89.0f);
  const float t_1 = t - (t * 0x1.715476p+0f /* 1.442695 */ + 0x1.8p+23f /* 12582912 */ - 0x1.8p+23f /* 12582912 */) * 0x1.63p-1f /* 0.6933594 */ - (t * 0x1.715476p+0f /* 1.442695 */ + 0x1.8p+23f /* 12582912 */ - 0x1.8p+23f /* 12582912 */) * -0x1.bd0106p-13f /* -0.00021219444 */;
  const int32_t t_2 = (int32_t)(hr_bits_f32(t * 0x1.715476p+0f /* 1.442695 */ + 0x1.8p+23f /* 12582912 */) - (uint32_t)1262485504) >> 1;
  const float t_3 = 1.0f - 2.0f / (((((((0x1.a0d2cep-13f /* 0.00019875691 */ * t_1 + 0x1.6e879cp-10f /* 0.0013981999 */) * t_1 + 0x1.11121p-7f /* 0.008333452 */) * t_1 + 0x1.555382p-5f /* 0.041665796 */) * t_1 + 0x1.555554p-3f /* 0.16666666 */) * t_1 + 0.5f) * (t_1 * t_1) + t_1 + 1.0f) * hr_from_bits_f32(((uint32_t)t_2 + (uint32_t)127) << 23) * hr_from_bits_f32((hr_bits_f32(t * 0x1.715476p+0f /* 1.442695 */ + 0x1.8p+23f /* 12582912 */) - (uint32_t)1262485504 - (uint32_t)t_2 + (uint32_t)127) << 23) + 1.0f);
  return fabsf(x) < 0.625f ? ((((-0x1.75e1d4p-8f /* -0.0057049887 */ * (x * x) + 0x1.52269cp-6f /* 0.020639088 */) * (x * x) + -0x1.b83c5ap-5f /* -0.053739715 */) * (x * x) + 0x1.110726p-3f /* 0.13331442 */) * (x * x) + -0x1.555532p-2f /* -0.3333328 */) * (x * x * x) + x : (x < 0.0f ? -0.0f - t_3 : t_3);
}

static inline float hr_exp_f32(float x) {
  const float t = hr_min_f32(hr_max_f32(x, -104.0f), 89.0f) * 0x1.715476p+0f /* 1.442695 */ + 0x1.8p+23f /* 12582912 */;
  const float t_1 = hr_min_f32(hr_max_f32(x, -104.0f), 89.0f) - (t - 0x1.8p+23f /* 12582912 */) * 0x1.63p-1f /* 0.6933594 */ - (t - 0x1.8p+23f /* 12582912 */) * -0x1.bd0106p-13f /* -0.00021219444 */;
  return ((((((0x1.a0d2cep-13f /* 0.00019875691 */ * t_1 + 0x1.6e879cp-10f /* 0.0013981999 */) * t_1 + 0x1.11121p-7f /* 0.008333452 */) * t_1 + 0x1.555382p-5f /* 0.041665796 */) * t_1 + 0x1.555554p-3f /* 0.16666666 */) * t_1 + 0.5f) * (t_1 * t_1) + t_1 + 1.0f) * hr_from_bits_f32(((uint32_t)((int32_t)(hr_bits_f32(t) - (uint32_t)1262485504) >> 1) + (uint32_t)127) << 23) * hr_from_bits_f32((hr_bits_f32(t) - (uint32_t)1262485504 - (uint32_t)((int32_t)(hr_bits_f32(t) - (uint32_t)1262485504) >> 1) + (uint32_t)127) << 23);
}

static inline int32_t hr_floor_mod_i32(int32_t a, int32_t b) {
  if (b == 0 || b == -1) return 0;
  const int32_t rest = (int32_t)(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? (int32_t)(rest + b) : rest;
}

static int32_t hr_fail(const hr_kernel_env* env, const char* message) {
  if (env->message != NULL && env->message_size > 0) {
    uint64_t size = strlen(message);
    if (size > env->message_size - 1) size = env->message_size - 1;
    memcpy(env->message, message, size);
    env->message[size] = 0;
  }
  return 1;
}

#ifdef __GNUC__
#define HR_PREFETCH(place) __builtin_prefetch(place)
#else
#define HR_PREFETCH(place) ((void)(place))
#endif

static inline int8_t hr_abs_i8(int8_t a) { return a < 0 ? (int8_t)(0 - (uint8_t)a) : a; }

static inline int64_t hr_floor_mod_i64(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return 0;
  const int64_t rest = (int64_t)(a % b);
  return rest != 0 && (rest < 0) != (b < 0) ? (int64_t)(rest + b) : rest;
}

int32_t a_matmul(const hr_kernel_env* env, DLTensor* const* args);
int32_t b_names(const hr_kernel_env* env, DLTensor* const* args);
int32_t c_workspace(const hr_kernel_env* env, DLTensor* const* args);
int32_t d_statements(const hr_kernel_env* env, DLTensor* const* args);

struct hr_a_matmul_part0_taken {
  const float* a;
  const float* b;
  float* c;
};

static int32_t hr_a_matmul_part0(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
  (void)env;
  const struct hr_a_matmul_part0_taken* taken = closure;
  const float* restrict a = taken->a;
  const float* restrict b = taken->b;
  float* restrict c = taken->c;
  for (int64_t i = begin; i < end; ++i) {
    float sum[8];
    for (int64_t j = 0; j < 8; ++j) {  /* vectorized */
      sum[j] = 0.0f;
    }
    for (int64_t k = 0; k < 24; ++k) {
      for (int64_t j_1 = 0; j_1 < 8; ++j_1) {  /* vectorized */
        sum[j_1] = fmaf(a[i * 24 + k], b[k * 8 + j_1], sum[j_1]);
      }
    }
    for (int64_t lane = 0; lane < 8; ++lane) {
      c[i * 8 + lane] = hr_max_f32(sum[lane], 0.0f);
    }
  }
  return 0;
}

/* a float32[m, 24], b float32[24, 8] -> c float32[m, 8] */
int32_t a_matmul(const hr_kernel_env* env, DLTensor* const* args) {
  const float* restrict a = args[0]->data;
  const int64_t m = args[0]->shape[0];
  const float* restrict b = args[1]->data;
  float* restrict c = args[2]->data;
  if (m > 0) {
    struct hr_a_matmul_part0_taken taken = {a, b, c};
    const int32_t status = env->parallel_for(env, hr_a_matmul_part0, &taken, m);
    if (status != 0) return status;
  }
  return 0;
}

/* int_v int32[4], double_x float16[4], exp_v float64[] -> v1st float32[4], EOF_v bool[4] */
int32_t b_names(const hr_kernel_env* env, DLTensor* const* args) {
  const int32_t* int_v = args[0]->data;
  const uint16_t* double_x = args[1]->data;
  const double* exp_v = args[2]->data;
  float* v1st = args[3]->data;
  uint8_t* EOF_v = args[4]->data;
  const double for_1 = exp_v[0];
  const int64_t unused = 3;
  (void)unused;
  for (int64_t NULL_v = 1; NULL_v < 4; ++NULL_v) {
    v1st[NULL_v] = hr_round_f16(hr_round_f16(hr_from_bits_f16(double_x[NULL_v]) * 0x1.998p-4f /* 0.099975586 */) + hr_round_f16(hr_odd_f64((double)(int32_t)((uint32_t)int_v[NULL_v] * (uint32_t)3)))) + hr_exp_f32(hr_tanh_f32((float)for_1));
    EOF_v[NULL_v] = hr_floor_mod_i32(int_v[NULL_v], 7) == INT32_MIN && !(isnan(v1st[NULL_v]) != 0);
  }
  {
    const int32_t int_1 = (int32_t)((uint32_t)int_v[0] + (uint32_t)1);
    if (!(int_1 > 0)) return hr_fail(env, "say \"when\"\012\?\?/");
    v1st[0] = int_1 < 4 ? (float)int_v[(int64_t)int_1] : INFINITY;
  }
  EOF_v[0] = true;
  return 0;
}

/* x int8[16] -> y int8[16] */
int32_t c_workspace(const hr_kernel_env* env, DLTensor* const* args) {
  const int8_t* x = args[0]->data;
  int8_t* y = args[1]->data;
  int8_t* big = (int8_t*)((char*)env->workspace + 0);
  {
    int8_t lanes[16];
    for (int64_t lane = 0; lane < 16; ++lane) {
      lanes[lane] = x[15 + -1 * lane];
    }
    for (int64_t lane = 0; lane < 16; ++lane) {
      big[lane] = lanes[lane];
    }
  }
  {
    int8_t lanes[8];
    for (int64_t lane = 0; lane < 8; ++lane) {
      int8_t sum = x[0];
      for (int64_t lane_1 = 0; lane_1 < 15; ++lane_1) {
        sum = (int8_t)(sum + x[lane_1 + 1]);
      }
      lanes[lane] = (int8_t)(big[1 + lane] + sum);
    }
    for (int64_t lane = 0; lane < 8; ++lane) {
      big[lane] = lanes[lane];
    }
  }
  for (int64_t i = 0; i < 16; ++i) {  /* unrolled */
    HR_PREFETCH(&x[i + 64]);
    y[i] = (int8_t)((int8_t)(big[i] * 3) - hr_abs_i8(x[i]));
  }
  return 0;
}

struct hr_d_statements_part0_taken {
  int32_t first;
  const int64_t* x;
  int64_t* y;
};

static int32_t hr_d_statements_part0(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
  (void)env;
  const struct hr_d_statements_part0_taken* taken = closure;
  const int32_t first = taken->first;
  const int64_t* x = taken->x;
  int64_t* y = taken->y;
  for (int64_t step = begin; step < end; ++step) {
    const int32_t i = (int32_t)((uint64_t)first + (uint64_t)step);
    y[(int64_t)i] = (int64_t)((uint64_t)x[(int64_t)i] + (uint64_t)(int64_t)i);
  }
  return 0;
}

struct hr_d_statements_part1_taken {
  const int64_t* x;
  uint8_t* seen;
  int64_t* y;
};

static int32_t hr_d_statements_part1(const hr_kernel_env* env, void* closure, int64_t begin, int64_t end) {
  (void)env;
  const struct hr_d_statements_part1_taken* taken = closure;
  const int64_t* x = taken->x;
  uint8_t* seen = taken->seen;
  int64_t* y = taken->y;
  for (int64_t n = begin; n < end; ++n) {
    seen[n] = x[n] - x[n] == 0 && x[n] != 2;
    y[n] = (int64_t)((uint64_t)y[n] + (uint64_t)(int64_t)(seen[n] != 0));
  }
  return 0;
}

/* x int64[8] -> y int64[8] */
int32_t d_statements(const hr_kernel_env* env, DLTensor* const* args) {
  const int64_t* x = args[0]->data;
  int64_t* y = args[1]->data;
  const int32_t first = 2;
  {
    struct hr_d_statements_part0_taken taken = {first, x, y};
    const int32_t status = env->parallel_for(env, hr_d_statements_part0, &taken, (int64_t)6);
    if (status != 0) return status;
  }
  const uint8_t first_1 = 0u;
  const int64_t count = (int64_t)2u;
  for (int64_t step = 0; step < count; ++step) {
    const uint8_t j = (uint8_t)((uint64_t)first_1 + (uint64_t)step);
    const int64_t v = (int64_t)((uint64_t)x[(int64_t)j] * (uint64_t)x[(int64_t)j]);
    y[(int64_t)j] = (int64_t)((uint64_t)v + (uint64_t)v);
  }
  const int64_t first_2 = x[7];
  const int64_t count_1 = x[6];
  for (int64_t step = 0; step < count_1; ++step) {
    const int64_t k = (int64_t)((uint64_t)first_2 + (uint64_t)step);
    y[hr_floor_mod_i64(k, 8)] = (int64_t)((uint64_t)y[hr_floor_mod_i64(k, 8)] + (uint64_t)k);
  }
  if (x[0] > 3) {
    int64_t doubled[4];
    for (int64_t lane = 0; lane < 4; ++lane) {
      doubled[lane] = (int64_t)((uint64_t)x[lane] * (uint64_t)2);
    }
    {
      int64_t lanes[4];
      for (int64_t lane = 0; lane < 4; ++lane) {
        int64_t sum = doubled[0];
        for (int64_t lane_1 = 0; lane_1 < 3; ++lane_1) {
          sum = (int64_t)((uint64_t)sum + (uint64_t)doubled[lane_1 + 1]);
        }
        lanes[lane] = (int64_t)((uint64_t)doubled[lane] + (uint64_t)sum);
      }
      for (int64_t lane = 0; lane < 4; ++lane) {
        y[4 + lane] = lanes[lane];
      }
    }
  } else {
    y[0] = 77;
  }
  int64_t t;
  if (x[1] < 0) {
    int64_t sum = x[0];
    for (int64_t lane = 0; lane < 3; ++lane) {
      sum = (int64_t)((uint64_t)sum + (uint64_t)x[2 * (lane + 1)]);
    }
    t = sum;
  } else {
    t = x[0];
  }
  y[3] = (int64_t)((uint64_t)t + (uint64_t)x[2 + 1]);
  uint8_t seen[8];
  {
    struct hr_d_statements_part1_taken taken = {x, seen, y};
    const int32_t status = env->parallel_for(env, hr_d_statements_part1, &taken, 8);
    if (status != 0) return status;
  }
  return 0;
}
