/* Runs an artifact from C with nothing but dlopen: no library of Headrace is there when this runs.
 *
 *     c-client MODEL.so --in 6,8 --out 30 --out 6,8
 *
 * Shapes are what the client knows of the model. Inputs are float32 and get the values 0, 1, 2 ... modulo 11, minus 4.
 */
#include <dlfcn.h>
#include <headrace/c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kMaxTensors = 16, kMaxRank = 8 };

typedef struct Tensor {
  int64_t shape[kMaxRank];
  int64_t strides[kMaxRank];
  int64_t count;
  DLTensor dl;
} Tensor;

static const char kUsage[] =
    "usage: c-client MODEL.so --in SHAPE ... --out SHAPE ...\n"
    "Runs an artifact once. SHAPE is that of a float32 input or output, in the program's order, such as 1,3,224,224.\n"
    "The inputs' values are 0, 1, 2, ... modulo 11, minus 4. Prints the first ten values of each output.\n";

static int asks_for_help(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return 1;
  }
  return 0;
}

/* Parses "6,8" and allocates the tensor; 0 when it cannot. */
static int make_tensor(Tensor* tensor, const char* text) {
  char* end = NULL;
  tensor->count = 1;
  for (tensor->dl.ndim = 0; tensor->dl.ndim < kMaxRank; text = end + 1) {
    const int64_t extent = strtoll(text, &end, 10);
    if (end == text || extent < 1 || extent > 1000000) return 0;
    tensor->shape[tensor->dl.ndim++] = extent;
    tensor->count *= extent;
    if (*end != ',') break;
  }
  int64_t stride = 1;
  for (int32_t i = tensor->dl.ndim - 1; i >= 0; stride *= tensor->shape[i--]) tensor->strides[i] = stride;
  tensor->dl.dtype = (DLDataType){kDLFloat, 32, 1};
  tensor->dl.device = (DLDevice){kDLCPU, 0};
  tensor->dl.shape = tensor->shape;
  tensor->dl.strides = tensor->strides;
  tensor->dl.data = calloc((size_t)tensor->count, sizeof(float));
  return *end == '\0' && tensor->dl.data != NULL;
}

static Tensor tensors[2][kMaxTensors]; /* inputs, outputs */
static DLTensor* pointers[2][kMaxTensors];
static int32_t counts[2];

static int parse_arguments(int argc, char** argv) {
  for (int i = 2; i + 1 < argc; i += 2) {
    const int side = strcmp(argv[i], "--out") == 0;
    if ((!side && strcmp(argv[i], "--in") != 0) || counts[side] == kMaxTensors) return 0;
    Tensor* tensor = &tensors[side][counts[side]];
    if (!make_tensor(tensor, argv[i + 1])) return 0;
    pointers[side][counts[side]++] = &tensor->dl;
  }
  return argc >= 2 && argc % 2 == 0;
}

static void print_outputs(void) {
  for (int32_t i = 0; i < counts[1]; ++i) {
    for (int64_t k = 0; k < tensors[1][i].count && k < 10; ++k) printf("%g ", ((float*)tensors[1][i].dl.data)[k]);
    printf("\n");
  }
}

int main(int argc, char** argv) {
  if (asks_for_help(argc, argv)) {
    printf("%s", kUsage);
    return HR_OK;
  }
  if (!parse_arguments(argc, argv)) {
    fprintf(stderr, "%s", kUsage);
    return HR_USAGE;
  }
  /* A name without a slash is a file here, not one of the system's libraries. */
  char path[4096];
  snprintf(path, sizeof path, "%s%s", strchr(argv[1], '/') == NULL ? "./" : "", argv[1]);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "c-client: %s\n", dlerror());
    return HR_USER;
  }
  /* A pointer to a function may not be cast from one to an object; a union says the same. */
  union {
    void* object;
    headrace_run_function function;
  } run = {.object = dlsym(library, HR_RUN_SYMBOL)};
  if (run.object == NULL) {
    fprintf(stderr, "c-client: '%s' is not an artifact of Headrace: it has no %s\n", argv[1], HR_RUN_SYMBOL);
    return HR_USER;
  }
  for (int32_t i = 0; i < counts[0]; ++i) {
    for (int64_t k = 0; k < tensors[0][i].count; ++k) ((float*)tensors[0][i].dl.data)[k] = (float)(k % 11) - 4;
  }
  const int code = run.function(pointers[0], counts[0], pointers[1], counts[1], NULL);
  if (code == 0) print_outputs();
  if (code == HR_REASON_NEEDS_RUNTIME) fprintf(stderr, "c-client: this model needs libheadrace_rt\n");
  if (code == HR_REASON_BAD_TENSOR) {
    fprintf(stderr,
            "c-client: a shape, dtype or the number of tensors is not the model's; headrace inspect %s shows them\n",
            argv[1]);
  }
  if (code != 0) fprintf(stderr, "c-client: the run failed with reason %d; headrace/reason.h names it\n", code);
  for (int side = 0; side < 2; ++side) {
    for (int32_t i = 0; i < counts[side]; ++i) free(tensors[side][i].dl.data);
  }
  dlclose(library);
  return code == 0 ? 0 : HR_USER;
}
