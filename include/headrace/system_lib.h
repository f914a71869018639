/* Functions that are part of the program itself, found by name: linked-in code registers them, and Headrace's runtime
 * finds them in the module of runtime.system_lib(). Standalone C.
 *
 *     static int32_t twice(void* self, const hr_value* args, int32_t num_args, hr_value* result) {
 *       if (num_args != 1 || args[0].type_index != HR_TYPE_INT) {
 *         hr_set_function_error("twice: expected an int");
 *         return -1;
 *       }
 *       result->type_index = HR_TYPE_INT;
 *       result->v.integer = 2 * args[0].v.integer;
 *       return 0;
 *     }
 *     __attribute__((constructor)) static void init(void) { hr_register_system_symbol("twice", twice); }
 *
 * Version 1. Values and functions are laid out as tvm-ffi's TVMFFIAny and TVMFFISafeCallType, so functions that were
 * written for it can be registered as they are. */
#ifndef HEADRACE_SYSTEM_LIB_H_
#define HEADRACE_SYSTEM_LIB_H_

#include <headrace/c_api.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of values. Others exist; a function that gets one refuses it. */
enum {
  HR_TYPE_NONE = 0,
  HR_TYPE_INT = 1,
  HR_TYPE_BOOL = 2, /* v.integer, 0 or 1 */
  HR_TYPE_FLOAT = 3,
  HR_TYPE_POINTER = 4,
  HR_TYPE_DLTENSOR = 7, /* v.pointer: a DLTensor */
  HR_TYPE_TENSOR = 70   /* v.pointer: an object whose DLTensor lies behind its header */
};

/* The bytes of an object's header. */
#define HR_OBJECT_HEADER_SIZE 24

typedef struct hr_value {
  int32_t type_index;
  uint32_t small_length; /* 0 */
  union {
    int64_t integer;
    double floating;
    void* pointer;
  } v;
} hr_value;

/* Returns 0 with `*result` set, which is None at entry; or -1, after hr_set_function_error. The arguments are lent. */
typedef int32_t (*hr_function)(void* self, const hr_value* args, int32_t num_args, hr_value* result);

/* Registers `function` as `name`. Its library must not be unloaded from then on. HR_USAGE: a NULL, an empty name, or a
 * name that another function has. May be called before main, and by any thread. */
HR_EXPORT hr_status hr_register_system_symbol(const char* name, hr_function function) HR_NOEXCEPT;

/* Sets the error that the caller gets when the function then returns -1. */
HR_EXPORT void hr_set_function_error(const char* message) HR_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_SYSTEM_LIB_H_ */
