/* How a call or a program ends: the results of the C API and the exit codes of the programs are one list. */
#ifndef HEADRACE_STATUS_H_
#define HEADRACE_STATUS_H_

typedef enum hr_status {
  HR_OK = 0,
  HR_INTERNAL = 1,           /* a defect of Headrace */
  HR_USAGE = 2,              /* the call is wrong: a NULL, an index out of range; a wrong command line */
  HR_USER = 3,               /* a bad model, file, shape, dtype, thread count ... */
  HR_MISSING_DEPENDENCY = 4, /* a backend, CPU feature or package that is needed is not here */
  HR_MISMATCH = 5            /* results differ */
} hr_status;

#endif /* HEADRACE_STATUS_H_ */
