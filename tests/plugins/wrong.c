/* Backends that are wrong, one for each value of WRONG, for tests of what Headrace says to them. */
#include <headrace/backend_abi.h>
#include <stdio.h>
#include <unistd.h>
#include <string.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

static void supports(void* self, const hr_graph* graph, uint32_t node, hr_verdict* verdict) {
  (void)self;
  (void)graph;
  (void)node;
  (void)verdict; /* yes, without a word */
}

static int32_t compile(void* self, const hr_compile_request* request, const hr_message* message) {
  const uint64_t graph = WRONG == 10 ? request->num_graphs : 0;
  (void)self;
  if (WRONG == 9) return 0;
  if (WRONG == 34) { /* a size below 0; it does not look at the answer */
    request->emit(request->sink, "x", (uint64_t)-1, &graph, 1);
    return 0;
  }
  if (WRONG == 35) { /* the second blob of the graph is not taken */
    const int is_taken = request->emit(request->sink, "x", 1, &graph, 1) == 0;
    const int is_taken_again = request->emit(request->sink, "yy", 2, &graph, 1) == 0;
    return !(is_taken && !is_taken_again);
  }
  if (WRONG == 36) {
    static char text[1 << 20];
    memset(text, 'x', sizeof text - 1);
    request->emit(request->sink, "x", 1, &graph, 1);
    return request->refuse(request->sink, graph, HR_REASON_OP_UNSUPPORTED, text);
  }
  if (WRONG == 12) {
    char text[200];
    snprintf(text, sizeof text, "the chip is asleep beside %s of %s; wake it", request->cpu, request->triple);
    hr_write_message(message, text);
    return 7;
  }
  if (WRONG == 21 || WRONG == 22) {
    const char* const unknown = "0123456789abcdef0123456789abcdef";
    if (request->emit_with_constants(request->sink, "x", 1, &graph, 1, &unknown, 1) == 0) return 0;
  } else if (request->emit(request->sink, "x", 1, &graph, 1) == 0) {
    return 0;
  }
  hr_write_message(message, "the host refused the blob");
  return 1;
}

static int32_t load(void* self, const void* blob, uint64_t size, void** loaded, const hr_message* message) {
  (void)self;
  (void)blob;
  *loaded = &supports; /* anything */
  if (WRONG == 11) hr_write_message(message, "the chip is full");
  return WRONG == 11 || size != 1;
}

#if WRONG == 22
static int32_t load_with_constants(void* self, const void* blob, uint64_t size, const DLTensor* const* constants,
                                   uint64_t num_constants, void** loaded, const hr_message* message) {
  (void)constants;
  (void)num_constants;
  return load(self, blob, size, loaded, message);
}
#endif

static int32_t find(void* self, void* loaded, const char* region, int32_t num_workers, void** found,
                    const hr_message* message) {
  (void)self;
  (void)region;
  (void)num_workers;
  if (WRONG == 13) hr_write_message(message, "no core of the chip is free");
  if (WRONG == 13) return 1;
  *found = WRONG == 14 ? NULL : loaded;
  return 0;
}

static int32_t run(void* self, void* region, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
  const hr_message message = {env->message, env->message_size};
  (void)self;
  (void)region;
  (void)args;
  (void)num_args;
  hr_write_message(&message, "the chip is too hot");
  return 5;
}

/* Declares wrong types for a region 1x2 -> 1x2: another size (23), another number of inputs (24), a type without a
 * shape (25), none with a reason (26), far too many (31), or one of far too many dimensions (32). */
static int32_t entry_types(void* self, void* region, hr_entry_types* types, const hr_message* message) {
  static const int64_t right[] = {1, 2}, wrong[] = {-1, 3};
  static const hr_tensor_type input = {{kDLFloat, 32, 1}, 2, right}, output = {{kDLFloat, 32, 1}, 2, wrong};
  static const hr_tensor_type shapeless = {{kDLFloat, 32, 1}, 2, NULL}, deep = {{kDLFloat, 32, 1}, 2000000000, right};
  (void)self;
  (void)region;
  types->num_inputs = WRONG == 24 ? 0 : 1;
  types->num_outputs = WRONG == 31 ? 4000000000u : 1;
  types->inputs = &input;
  types->outputs = WRONG == 25 ? &shapeless : WRONG == 32 ? &deep : &output;
  if (WRONG == 26) hr_write_message(message, "the table of the chip is worn");
  return WRONG == 26;
}

#if WRONG == 1
#define headrace_backend_entry other_entry
#endif
HR_BACKEND_EXPORT int32_t headrace_backend_entry(const hr_host* host, hr_backend* backend, const hr_message* message) {
  static char long_name[100], long_version[258];
  (void)host;
  if (WRONG == 38) _exit(0);
  if (WRONG == 39) pause();
  HR_FILL_ABI(hr_backend, backend);
  if (WRONG == 2) backend->abi.major = 99;
  if (WRONG == 33) backend->abi.size = 20;
  memset(long_name, 'x', sizeof long_name - 1);
  memset(long_version, '1', sizeof long_version - 1);
  backend->name = WRONG == 3    ? NULL
                  : WRONG == 15 ? long_name
                  : WRONG == 16 ? "two words"
                  : WRONG == 17 ? "native"
                                : "wrong" TEXT(WRONG);
  backend->version = WRONG == 18 ? "" : WRONG == 37 ? long_version : "1";
  if (WRONG == 6) backend->patterns = "{ wrong6.sum: add(_ }";
  if (WRONG == 7) backend->patterns = "{ other.sum: add(_, _) }";
  if (WRONG == 27) backend->patterns = "{ wrong27.sum: add(_, _), wrong27.relu: tanh(nn.relu(_, _)) }";
  if (WRONG == 28) backend->patterns = "{ wrong28.root: nn.relu(sqrt(_)[attrs foo=1]) }";
  if (WRONG == 29) backend->patterns = "{ wrong29.norm: nn.softmax(_)[dtype float32][attrs axes=1] }";
  if (WRONG == 30) backend->patterns = "{ wrong30.two: exp(exp(_)), wrong30.two: exp(_), wrong30.two: exp(exp(_)) }";
  backend->supports = WRONG == 19 ? NULL : &supports;
  backend->compile = WRONG == 8 ? NULL : &compile;
  backend->load = &load;
#if WRONG == 22 /* 21 emits for it, and lacks it */
  backend->load_with_constants = &load_with_constants;
#endif
  backend->find = &find;
  backend->run = WRONG == 4 ? NULL : &run;
  if ((WRONG >= 23 && WRONG <= 26) || WRONG == 31 || WRONG == 32) backend->entry_types = &entry_types;
  if (WRONG == 5) hr_write_message(message, "the driver of the chip is not installed");
  return WRONG == 5;
}
