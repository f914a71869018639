/* A user's C library that makes functions known when it is loaded. */
#include <headrace/system_lib.h>
#include <stddef.h>

static int32_t twice(void* self, const hr_value* args, int32_t num_args, hr_value* result) {
  (void)self;
  if (num_args != 1 || args[0].type_index != HR_TYPE_INT) {
    hr_set_function_error("twice: expected an int");
    return -1;
  }
  result->type_index = HR_TYPE_INT;
  result->v.integer = 2 * args[0].v.integer;
  return 0;
}

/* The sum of a float32 tensor's elements, through either way of passing it. */
static int32_t sum(void* self, const hr_value* args, int32_t num_args, hr_value* result) {
  (void)self;
  const DLTensor* tensor = NULL;
  if (num_args == 1 && args[0].type_index == HR_TYPE_DLTENSOR) tensor = args[0].v.pointer;
  if (num_args == 1 && args[0].type_index == HR_TYPE_TENSOR)
    tensor = (const DLTensor*)((const char*)args[0].v.pointer + HR_OBJECT_HEADER_SIZE);
  if (tensor == NULL || tensor->ndim != 1) return -1;
  result->type_index = HR_TYPE_FLOAT;
  for (int64_t i = 0; i < tensor->shape[0]; ++i)
    result->v.floating += ((const float*)((const char*)tensor->data + tensor->byte_offset))[i];
  return 0;
}

static int32_t silent(void* self, const hr_value* args, int32_t num_args, hr_value* result) {
  (void)self, (void)args, (void)num_args, (void)result;
  return -1;
}

__attribute__((constructor)) static void init(void) {
  hr_register_system_symbol("test_twice", twice);
  hr_register_system_symbol("test_sum", sum);
  hr_register_system_symbol("test_silent", silent);
}

/* Returns whether each mistake in registering has its error code. */
__attribute__((visibility("default"))) int test_mistakes(void);
__attribute__((visibility("default"))) int test_mistakes(void) {
  return hr_register_system_symbol(NULL, twice) == HR_USAGE && hr_register_system_symbol("", twice) == HR_USAGE &&
         hr_register_system_symbol("test_null", NULL) == HR_USAGE &&
         hr_register_system_symbol("test_twice", silent) == HR_USAGE &&
         hr_register_system_symbol("test_twice", twice) == HR_OK;
}
