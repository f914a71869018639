/* Runs an artifact from C with libheadrace_rt:
 *
 *     c-host [--all] MODEL.so [INPUT.npy ...]
 *
 * lists the program's inputs and outputs, reads each input from a .npy file (or uses zeros), runs, and prints the first
 * values of each output, or all of them. Only <headrace/c_api.h> is needed. */
#include <headrace/c_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char kUsage[] =
    "usage: c-host [--all] MODEL.so [INPUT.npy ...]\n"
    "Runs an artifact once, on the .npy files in the order of its inputs, or on zeros where none is given.\n"
    "  --all   print every value of each output, with all its digits, and not only the first ten\n";

/* Whether --all was given. */
static int prints_all = 0;

static int asks_for_help(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0) return 1;
  }
  return 0;
}

static int report(const char* what) {
  const hr_error* error = hr_last_error();
  fprintf(stderr, "c-host: %s: %s%s%s\n", what, error->message, error->op[0] != '\0' ? "\n  at: " : "", error->op);
  return (int)error->code;
}

static size_t element_count(const hr_tensor_info* info) {
  size_t count = 1;
  for (int32_t i = 0; i < info->ndim; ++i) count *= (size_t)info->shape[i];
  return count;
}

static size_t size_bytes(const hr_tensor_info* info) {
  return (element_count(info) * info->dtype.bits * info->dtype.lanes + 7) / 8;
}

static void print_info(const char* what, const hr_tensor_info* info) {
  const char* kinds[] = {[kDLInt] = "int", [kDLUInt] = "uint", [kDLFloat] = "float", [kDLBfloat] = "bfloat"};
  const char* kind = info->dtype.code < sizeof kinds / sizeof *kinds ? kinds[info->dtype.code] : NULL;
  if (info->dtype.code == kDLBool) {
    printf("%s %s: bool, shape", what, info->name);
  } else {
    printf("%s %s: %s%d, shape", what, info->name, kind != NULL ? kind : "other", info->dtype.bits);
  }
  for (int32_t i = 0; i < info->ndim; ++i) printf(" %lld", (long long)info->shape[i]);
  printf("\n");
}

/* Writes the header's words for the input's dtype and shape, as numpy writes them. Returns 0 for a dtype that numpy
 * does not have. */
static int expected_words(const hr_tensor_info* info, char* dtype, char* shape, size_t size) {
  const char* kinds[] = {[kDLInt] = "i", [kDLUInt] = "u", [kDLFloat] = "f", [kDLBool] = "b"};
  const int is_known = info->dtype.code <= kDLBool && info->dtype.code < sizeof kinds / sizeof *kinds;
  if (!is_known || kinds[info->dtype.code] == NULL || info->dtype.lanes != 1 || info->dtype.bits < 8) return 0;
  snprintf(dtype, size, "'%c%s%d'", info->dtype.bits == 8 ? '|' : '<', kinds[info->dtype.code], info->dtype.bits / 8);
  size_t used = (size_t)snprintf(shape, size, "'shape': (");
  for (int32_t i = 0; i < info->ndim && used < size; ++i)
    used += (size_t)snprintf(shape + used, size - used, "%s%lld", i == 0 ? "" : ", ", (long long)info->shape[i]);
  if (used < size) snprintf(shape + used, size - used, info->ndim == 1 ? ",)" : ")");
  return 1;
}

/* Reads the data of a .npy file for an input (numpy's format.py, version 1.0). Returns NULL, or what is wrong. */
static const char* read_npy(const char* path, void* data, const hr_tensor_info* info) {
  unsigned char head[10];
  char text[4096], dtype[1024], shape[1024];
  FILE* file = fopen(path, "rb");
  if (file == NULL) return "cannot be opened";
  const char* fault = NULL;
  if (fread(head, 1, sizeof head, file) != sizeof head || memcmp(head, "\x93NUMPY\x01", 7) != 0) {
    fault = "is not a .npy file of version 1";
  } else {
    const size_t length = head[8] + (size_t)256 * head[9];
    if (length >= sizeof text || fread(text, 1, length, file) != length) {
      fault = "has a damaged header";
    } else {
      text[length] = '\0';
      if (!expected_words(info, dtype, shape, sizeof dtype) || strstr(text, dtype) == NULL) {
        fault = "has another dtype than the input";
      } else if (strstr(text, shape) == NULL) {
        fault = "has another shape than the input";
      } else if (strstr(text, "'fortran_order': False") == NULL) {
        fault = "is in Fortran order; save it with numpy.ascontiguousarray";
      } else if (fread(data, 1, size_bytes(info), file) != size_bytes(info) || fgetc(file) != EOF) {
        fault = "has less data than its header says";
      }
    }
  }
  fclose(file);
  return fault;
}

static hr_status set_input(hr_executor* executor, int32_t index, const hr_tensor_info* info, const char* path) {
  void* data = calloc(1, size_bytes(info) + 1);
  if (data == NULL) return HR_INTERNAL;
  const char* fault = path == NULL ? NULL : read_npy(path, data, info);
  if (fault != NULL) {
    fprintf(stderr, "c-host: input '%s': '%s' %s\n", info->name, path, fault);
    free(data);
    exit(HR_USER);
  }
  const DLTensor tensor = {
      .data = data, .device = {kDLCPU, 0}, .ndim = info->ndim, .dtype = info->dtype, .shape = (int64_t*)info->shape};
  const hr_status status = hr_executor_set_input(executor, index, &tensor);
  free(data); /* set_input copied it */
  return status;
}

static int print_output(hr_executor* executor, int32_t index, const hr_tensor_info* info) {
  DLTensor view;
  if (hr_executor_get_output(executor, index, &view) != HR_OK) return report("get_output");
  print_info("output", info);
  if (view.dtype.code != kDLFloat || view.dtype.bits != 32) return 0;
  const size_t count = element_count(info) < 10 || prints_all ? element_count(info) : 10;
  for (size_t i = 0; i < count; ++i) printf(prints_all ? " %.9g" : " %g", ((const float*)view.data)[i]);
  printf("\n");
  return 0;
}

static int run(hr_artifact* artifact, hr_executor* executor, int num_files, char** files) {
  int32_t num_inputs = 0;
  int32_t num_outputs = 0;
  hr_tensor_info info;
  if (hr_artifact_num_inputs(artifact, NULL, &num_inputs) != HR_OK) return report("inputs");
  if (hr_artifact_num_outputs(artifact, NULL, &num_outputs) != HR_OK) return report("outputs");
  if (num_files > num_inputs) {
    fprintf(stderr, "c-host: %d files are given, the program has %d inputs\n%s", num_files, num_inputs, kUsage);
    return HR_USAGE;
  }
  for (int32_t i = 0; i < num_inputs; ++i) {
    if (hr_artifact_input_info(artifact, NULL, i, &info) != HR_OK) return report("input");
    print_info("input", &info);
    if (set_input(executor, i, &info, i < num_files ? files[i] : NULL) != HR_OK) return report("set_input");
  }
  if (hr_executor_run(executor) != HR_OK) return report("run");
  for (int32_t i = 0; i < num_outputs; ++i) {
    if (hr_artifact_output_info(artifact, NULL, i, &info) != HR_OK) return report("output");
    const int code = print_output(executor, i, &info);
    if (code != 0) return code;
  }
  return 0;
}

int main(int argc, char** argv) {
  hr_artifact* artifact = NULL;
  hr_executor* executor = NULL;
  if (asks_for_help(argc, argv)) {
    printf("%s", kUsage);
    return HR_OK;
  }
  if (argc > 1 && strcmp(argv[1], "--all") == 0) {
    prints_all = 1;
    ++argv;
    --argc;
  }
  if (argc < 2) {
    fprintf(stderr, "%s", kUsage);
    return HR_USAGE;
  }
  if (hr_artifact_open(argv[1], &artifact) != HR_OK) return report("open");
  int code = 0;
  if (hr_executor_create(artifact, NULL, NULL, &executor) != HR_OK) {
    code = report("create");
  } else {
    code = run(artifact, executor, argc - 2, argv + 2);
  }
  hr_executor_destroy(executor);
  hr_artifact_close(artifact);
  return code;
}
