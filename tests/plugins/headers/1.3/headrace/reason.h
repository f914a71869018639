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
  HR_REASON_SYSTEM = 12,         /* the operating system said no: permissions, memory, descriptors */
  HR_REASON_DEVICE_MISSING = 16, /* the program needs memory of a device that this process does not have */
  /* running an artifact */
  HR_REASON_BAD_TENSOR = 13, /* dtype, shape, device or strides of an input or output that was given */
  HR_REASON_INPUT_MISSING = 14,
  HR_REASON_KERNEL_FAILED = 15,
  HR_REASON_BACKEND_FAILED = 17, /* a backend's code was there, and failed to load or to run */
  /* an op or a model that is not supported */
  HR_REASON_OP_UNSUPPORTED = 20,
  HR_REASON_ATTRIBUTE_UNSUPPORTED = 21,
  HR_REASON_DTYPE_UNSUPPORTED = 22,
  HR_REASON_SHAPE_UNSUPPORTED = 23,
  HR_REASON_OPSET_UNSUPPORTED = 24,
  HR_REASON_DYNAMIC_UNSUPPORTED = 25,
  HR_REASON_DATA_DEPENDENT = 26,
  HR_REASON_BAD_MODEL = 27, /* the model contradicts itself or its format's rules */
  /* fusion: why an op call is not computed in one kernel with the calls that read it */
  HR_REASON_FUSE_PATTERN = 40,        /* one of them is opaque: its loops are its own */
  HR_REASON_FUSE_DEPTH = 41,          /* the group would have more op calls than max_depth */
  HR_REASON_FUSE_MULTIPLE_USERS = 42, /* its readers meet nowhere */
  HR_REASON_FUSE_KINDS = 43,          /* these kinds of ops share no kernel in this order */
  HR_REASON_FUSE_ANCHORS = 44,        /* each has an anchor; a kernel has one */
  HR_REASON_FUSE_VIEW = 45,           /* one of them is a view, which costs nothing alone */
  HR_REASON_FUSE_DATA_SIZED = 46,     /* the size of a result comes from data */
  HR_REASON_FUSE_TENSORS = 47,        /* the kernel would have too many tensors around it */
  HR_REASON_FUSE_TUPLE = 48,          /* it is an item of a tuple that is taken apart again */
  HR_REASON_FUSE_SCOPE = 49,          /* a let, a branch, a match or a function lies between */
  /* constants */
  HR_REASON_FOLD_LIMIT = 50, /* evaluating it at compile time takes too many steps or too much memory */
  /* placement: why an op runs on the backend that it runs on */
  HR_REASON_PLACE_ONLY_NATIVE = 60, /* no other backend was asked for */
  HR_REASON_PLACE_BY_HAND = 61,     /* the program says so: it lies in a function marked Compiler */
  HR_REASON_PLACE_NO_FALLBACK = 62, /* the region cannot be compiled natively too, so it has no fallback */
  HR_REASON_PLACE_BY_ORDER = 63,    /* the backend is the first of the list that takes the op */
  HR_REASON_PLACE_NO_REGION = 64,   /* a backend takes the op, which no region can hold here */
  HR_REASON_PLACE_BY_COST = 65,     /* the plan of least cost runs it there; the message has the costs */
  HR_REASON_PLACE_BY_PLAN = 66,     /* the plan that was given says so */
  HR_REASON_PLACE_BY_OVERRIDE = 67  /* --place says so */
} hr_reason;

#endif /* HEADRACE_REASON_H_ */
