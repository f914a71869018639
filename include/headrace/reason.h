/* Reason codes: why something was not done. One list for the whole project; a number is never reused. */
#ifndef HEADRACE_REASON_H_
#define HEADRACE_REASON_H_

typedef enum hr_reason {
  HR_REASON_NONE = 0,
  /* loading an artifact */
  HR_REASON_NOT_FOUND = 1,
  HR_REASON_NOT_AN_ARTIFACT = 2,
  HR_REASON_BAD_MAGIC = 3,
  HR_REASON_BAD_VERSION = 4,
  HR_REASON_BAD_CHECKSUM = 5,
  HR_REASON_TRUNCATED = 6,
  HR_REASON_CPU_FEATURE_MISSING = 7,
  HR_REASON_BACKEND_MISSING = 8,
  HR_REASON_NEEDS_RUNTIME = 9,
  HR_REASON_BAD_MANIFEST = 10,
  HR_REASON_SYMBOL_MISSING = 11,
  HR_REASON_SYSTEM = 12, /* the operating system said no: permissions, memory, descriptors */
  /* running an artifact */
  HR_REASON_BAD_TENSOR = 13, /* dtype, shape, device or strides of an input or output that was given */
  HR_REASON_INPUT_MISSING = 14,
  HR_REASON_KERNEL_FAILED = 15,
  /* an op or a model that is not supported */
  HR_REASON_OP_UNSUPPORTED = 20,
  HR_REASON_ATTRIBUTE_UNSUPPORTED = 21,
  HR_REASON_DTYPE_UNSUPPORTED = 22,
  HR_REASON_SHAPE_UNSUPPORTED = 23,
  HR_REASON_OPSET_UNSUPPORTED = 24,
  HR_REASON_DYNAMIC_UNSUPPORTED = 25,
  HR_REASON_DATA_DEPENDENT = 26,
  HR_REASON_BAD_MODEL = 27, /* the model contradicts itself or its format's rules */
  /* fusion */
  HR_REASON_FUSE_PATTERN = 40,
  HR_REASON_FUSE_DEPTH = 41,
  HR_REASON_FUSE_MULTIPLE_USERS = 42
} hr_reason;

#endif /* HEADRACE_REASON_H_ */
