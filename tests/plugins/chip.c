/* A backend for tests: plain C against headrace/backend_abi.h, as somebody else would write it. It computes add,
 * subtract, multiply, nn.relu, clip and nn.dense with constant weights, and takes relu(x * constant) as one.
 *
 * Its blob: regions, each of values; a value is an input, a constant or an instruction on values before it. Everything
 * is a number of 8 bytes, floats too. */
#include <headrace/backend_abi.h>
#include <math.h>
#include <stdlib.h>

#include <stdio.h>
#include <unistd.h>

#ifndef CHIP_NAME
#define CHIP_NAME "chip"
#endif

/* A mistake, for tests of the conformance kit: its list is in test_conformance.py. 0: none. */
#ifndef FAULT
#define FAULT 0
#endif

/* 1: constants are left to the host, and a value has the number of its constant in place of the data. */
#ifndef APART
#define APART 0
#endif

/* The minor version of the interface that it must be built with, for tests of earlier ones. */
#ifdef CHIP_MINOR
_Static_assert(HR_BACKEND_ABI_MINOR == CHIP_MINOR, "another header than the one of that version");
#endif

#ifndef CHIP_VERSION
#define CHIP_VERSION "1"
#endif

/* 1: it says what calls cost: a tenth of the host's own code, or of an add the thousand-fold. 2: all calls cost the
 * time of the result's elements at the machine's peak, half of it after a multiply in one region, and each border as
 * much. 3: the costs of 2, and for what is saved and for borders, ODD. */
#ifndef COSTS
#define COSTS 0
#endif

/* 1: it computes one call at a time. */
#ifndef ONE_CALL
#define ONE_CALL 0
#endif

static const hr_host* host;

/* ---- what the chip computes ---- */

enum { INPUT, CONSTANT, ADD, SUBTRACT, MULTIPLY, RELU, CLIP, DENSE, SCALED_RELU };

static int kind_of(const char* op) {
  static const char* const names[] = {"add", "subtract", "multiply", "nn.relu", "clip", "nn.dense"};
  for (int i = 0; i < 6; ++i) {
    if (op != NULL && strcmp(op, names[i]) == 0) return ADD + i;
  }
  return -1;
}

static int64_t elements(hr_tensor_type type) {
  int64_t count = 1;
  for (int32_t i = 0; i < type.ndim; ++i) count *= type.shape[i];
  return count;
}

static int is_float(hr_tensor_type type) {
  for (int32_t i = 0; i < type.ndim; ++i) {
    if (type.shape[i] < 0) return 0;
  }
  return type.dtype.code == kDLFloat && (type.dtype.bits == 32 || FAULT == 17) && type.dtype.lanes == 1;
}

static int same_shape(hr_tensor_type a, hr_tensor_type b) {
  return a.ndim == b.ndim && (a.ndim == 0 || memcmp(a.shape, b.shape, (size_t)a.ndim * sizeof(int64_t)) == 0);
}

static void refuse(hr_verdict* verdict, int32_t reason, const char* message) {
  verdict->reason = reason;
  if (FAULT == 21) return;
  hr_write_message(&verdict->message, message);
}

static void supports(void* self, const hr_graph* graph, uint32_t node, hr_verdict* verdict) {
  const hr_graph_api* api = host->graph;
  const int kind = kind_of(api->op(graph, node));
  const hr_tensor_type result = api->result_type(graph, node, 0);
  (void)self;
  if (FAULT == 37 && kind == SUBTRACT) abort();
  if (FAULT == 38 && kind == SUBTRACT) pause();
  if (kind < 0) {
    refuse(verdict, HR_REASON_OP_UNSUPPORTED, "the chip does not compute this op");
    return;
  }
  if (!is_float(result)) {
    refuse(verdict, HR_REASON_DTYPE_UNSUPPORTED, "the chip knows float32 alone");
    return;
  }
  for (uint32_t i = 0; i < api->num_operands(graph, node); ++i) {
    const hr_tensor_type type = api->result_type(graph, api->operand(graph, node, i), 0);
    if (kind != DENSE && !same_shape(type, result) && FAULT != 23) {
      refuse(verdict, HR_REASON_SHAPE_UNSUPPORTED, "the chip does not broadcast");
      return;
    }
  }
  if (kind == DENSE && (result.ndim != 2 || api->kind(graph, api->operand(graph, node, 1)) != HR_NODE_CONST))
    refuse(verdict, HR_REASON_SHAPE_UNSUPPORTED, "the chip multiplies matrices by constant weights");
}

static const char* const patterns = "{ " CHIP_NAME ".scaled_relu: nn.relu(multiply(_, const)) }";

static void accepts(void* self, const char* pattern, const hr_graph* match, hr_verdict* verdict) {
  const hr_graph_api* api = host->graph;
  (void)self;
  (void)pattern;
  for (uint32_t node = 0; node < api->num_nodes(match); ++node) {
    if (!is_float(api->result_type(match, node, 0)) ||
        !same_shape(api->result_type(match, node, 0), api->result_type(match, api->num_nodes(match) - 1, 0)))
      refuse(verdict, HR_REASON_SHAPE_UNSUPPORTED, "the chip scales by tensors of the same sizes");
  }
}

/* ---- compiling ---- */

typedef struct {
  int64_t* words;
  uint64_t count, room;
  const char* ids[64]; /* constants that are left to the host */
  uint64_t num_ids;
} words;

static void put(words* out, int64_t word) {
  if (out->count == out->room) {
    out->room = out->room * 2 + 64;
    out->words = realloc(out->words, out->room * sizeof(int64_t));
  }
  out->words[out->count++] = word;
}

static void put_float(words* out, double value) {
  int64_t word;
  memcpy(&word, &value, sizeof word);
  put(out, word);
}

/* A value: its kind, its elements, its operands, two numbers, and for a constant its data. */
static void put_value(words* out, int kind, int64_t count, int64_t a, int64_t b, double low, double high) {
  put(out, kind);
  put(out, count);
  put(out, a);
  put(out, b);
  put_float(out, low);
  put_float(out, high);
}

static void put_constant(words* out, const hr_graph* graph, uint32_t node) {
  const DLTensor* tensor = host->graph->constant(graph, node).tensor;
  const float* data = (const float*)((const char*)tensor->data + tensor->byte_offset);
  static const float* first; /* for fault 3: every constant is the first one */
  if (FAULT == 3 && first == NULL) first = data;
  if (FAULT == 3) data = first;
  const int64_t count = elements(host->graph->result_type(graph, node, 0));
  put_value(out, CONSTANT, count, (int64_t)out->num_ids, 0, 0, 0);
  if (APART) {
    out->ids[out->num_ids++ % 64] = host->graph->constant(graph, node).content_id;
    return;
  }
  for (int64_t i = 0; i < count; ++i) put_float(out, data[i]);
}

static double real_attr(const hr_graph* graph, uint32_t node, const char* name) {
  if (FAULT == 2 && strcmp(name, "a_max") == 0) return 1e30;
  const hr_attr attr = host->graph->find_attr(graph, node, name);
  if (attr.kind == HR_ATTR_INTEGER) return (double)attr.integers[0];
  return attr.kind == HR_ATTR_REAL ? attr.reals[0] : 0;
}

/* The constant of a match is a value of its own, before the composite. Returns the number of values. */
static int64_t put_composite(words* out, const hr_graph* graph, uint32_t node, const int64_t* value_of, int64_t next) {
  const hr_graph_api* api = host->graph;
  const hr_graph* body = api->body(graph, node);
  for (uint32_t i = 0; i < api->num_nodes(body); ++i) {
    if (api->kind(body, i) == HR_NODE_CONST) put_constant(out, body, i);
  }
  int is_second = 0;
  for (uint32_t i = 0; i < node; ++i) is_second |= api->kind(graph, i) == HR_NODE_COMPOSITE;
  put_value(out, FAULT == 43 && is_second ? MULTIPLY : SCALED_RELU, elements(api->result_type(graph, node, 0)),
            value_of[api->operand(graph, node, 0)], next, 0, 0);
  return next + 2;
}

/* Why the chip does not take a call, of a region that was marked by hand, too; NULL: it does. */
static const char* refusal_of(const hr_graph* graph, uint32_t node) {
  static char text[200];
  hr_verdict verdict = {HR_REASON_NONE, {text, sizeof text}};
  supports(NULL, graph, node, &verdict);
  return verdict.reason == HR_REASON_NONE ? NULL : text;
}

static const char* put_region(words* out, const hr_graph* graph) {
  const hr_graph_api* api = host->graph;
  const uint32_t num_nodes = api->num_nodes(graph);
  int64_t* value_of = calloc(num_nodes + 1u, sizeof(int64_t));
  int64_t next = 0;
  const char* fault = NULL;
  const uint64_t head = out->count;
  const uint64_t name_words = strlen(api->name(graph)) / 8 + 1;
  put(out, (int64_t)name_words);
  for (uint64_t i = 0; i < name_words; ++i) put(out, 0);
  memcpy(out->words + head + 1, api->name(graph), strlen(api->name(graph)));
  const uint64_t count_at = out->count;
  put(out, 0);
  for (uint32_t node = 0; node < num_nodes && fault == NULL; ++node) {
    const hr_tensor_type type = api->result_type(graph, node, 0);
    const uint32_t a = api->operand(graph, node, 0), b = api->operand(graph, node, 1);
    value_of[node] = next;
    switch (api->kind(graph, node)) {
      case HR_NODE_INPUT:
        put_value(out, INPUT, elements(type), 0, 0, 0, 0);
        ++next;
        break;
      case HR_NODE_CONST:
        put_constant(out, graph, node);
        ++next;
        break;
      case HR_NODE_CALL:
        fault = FAULT == 44 ? NULL : refusal_of(graph, node);
        if (FAULT == 42 && kind_of(api->op(graph, node)) == RELU && kind_of(api->op(graph, a)) == DENSE) {
          value_of[node] = value_of[a];
          break;
        }
        put_value(out, kind_of(api->op(graph, node)), elements(type), value_of[a],
                  api->num_operands(graph, node) > 1 ? value_of[b] : 0, real_attr(graph, node, "a_min"),
                  real_attr(graph, node, "a_max"));
        ++next;
        break;
      case HR_NODE_COMPOSITE:
        next = put_composite(out, graph, node, value_of, next);
        value_of[node] = next - 1;
        break;
      case HR_NODE_TUPLE: /* the results of the region */
        break;
      default:
        fault = "the chip has no items of tuples";
    }
  }
  out->words[count_at] = next;
  put(out, api->num_outputs(graph));
  for (uint32_t i = 0; i < api->num_outputs(graph); ++i) put(out, value_of[api->output(graph, i, NULL)]);
  free(value_of);
  return fault;
}

static int32_t compile(void* self, const hr_compile_request* request, const hr_message* message) {
  words out = {0};
  uint64_t* compiled = calloc(request->num_graphs, sizeof(uint64_t));
  uint64_t count = 0;
  int32_t code = 0;
  (void)self;
  for (uint64_t i = 0; i < request->options.count; ++i) {
    const int is_speed = strcmp(request->options.items[i].name, "speed") == 0;
    if (is_speed && request->options.items[i].reals != NULL) continue;
    hr_write_message(message, is_speed ? "its speed is not a number" : "its only option is speed");
    code = -1;
  }
  put(&out, 0x43484950); /* CHIP */
  put(&out, 0);
  for (uint64_t i = 0; i < (FAULT == 41 ? 1 : request->num_graphs) && code == 0; ++i) {
    const uint64_t before = out.count;
    const char* fault = put_region(&out, request->graphs[i]);
    if (FAULT == 26) fault = "the chip thought better of it";
    if (fault == NULL) {
      compiled[count++] = i;
    } else {
      out.count = before;
      request->refuse(request->sink, i, HR_REASON_OP_UNSUPPORTED, fault);
    }
  }
  out.words[1] = (int64_t)count;
  if (FAULT == 18) {
    static int64_t counter;
    out.words[0] = 0x43484950 + (++counter << 32);
  }
#if APART
  if (code == 0 && !HR_HAS_FIELD(hr_compile_request, request, emit_with_constants)) {
    hr_write_message(message, "it stores no constants for backends; use a later Headrace");
    code = -1;
  }
  if (code == 0 && count > 0)
    code = request->emit_with_constants(request->sink, out.words, out.count * sizeof(int64_t), compiled, count, out.ids,
                                        out.num_ids);
#endif
  if (code == 0 && count > 0 && !APART)
    code = request->emit(request->sink, out.words, out.count * sizeof(int64_t), compiled, count);
  free(out.words);
  free(compiled);
  return code;
}

/* ---- running ---- */

/* A region in the blob, whose words stay where they are. */
typedef struct {
  const char* name;
  const int64_t* values;
  int64_t num_values, num_outputs;
  const int64_t* outputs;
  const DLTensor* const* constants; /* where they are apart */
} region;

typedef struct {
  int64_t num_regions;
  region* regions;
} loaded_blob;

static const int64_t* next_value(const int64_t* value) {
  return value + 6 + (value[0] == CONSTANT && !APART ? value[1] : 0);
}

static int is_constant_there(const int64_t* value, const DLTensor* const* constants, uint64_t num_constants) {
  if (value[2] < 0 || (uint64_t)value[2] >= num_constants) return 0;
  const DLTensor* tensor = constants[value[2]];
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count == value[1] && tensor->dtype.code == kDLFloat && tensor->dtype.bits == 32;
}

static double number(const int64_t* word) {
  double value;
  memcpy(&value, word, sizeof value);
  return value;
}

/* Reads a region; returns the word after it, or NULL for one that breaks off or uses values that are not there. */
static const int64_t* read_region(const int64_t* at, const int64_t* end, region* one, const DLTensor* const* constants,
                                  uint64_t num_constants) {
  if (end - at < 2 || at[0] < 1 || at[0] > end - at - 2) return NULL;
  one->name = (const char*)(at + 1);
  if (memchr(one->name, 0, (size_t)at[0] * 8u) == NULL) return NULL;
  at += 1 + at[0];
  one->num_values = *at++;
  one->values = at;
  for (int64_t k = 0; k < one->num_values; ++k) {
    if (FAULT == 7) {
      at = next_value(at);
      continue;
    }
    if (end - at < 6 || at[1] < 0 || at[0] < INPUT || at[0] > SCALED_RELU) return NULL;
    if (at[0] > CONSTANT && (at[2] < 0 || at[2] >= k || at[3] < 0 || at[3] >= k)) return NULL;
    if (at[0] == CONSTANT && (APART ? !is_constant_there(at, constants, num_constants) : at[1] > end - at - 6))
      return NULL;
    at = next_value(at);
  }
  if (end - at < 1 || at[0] < 0 || at[0] > end - at - 1) return NULL;
  one->num_outputs = *at++;
  one->outputs = at;
  for (int64_t k = 0; k < one->num_outputs; ++k) {
    if (at[k] < 0 || at[k] >= one->num_values) return NULL;
  }
  return at + one->num_outputs;
}

static int32_t load_with_constants(void* self, const void* blob, uint64_t size, const DLTensor* const* constants,
                                   uint64_t num_constants, void** loaded, const hr_message* message) {
  const int64_t *at = blob, *end = at + size / 8;
  (void)self;
  if (size < 16 || size % 8 != 0 || (at[0] & 0xFFFFFFFF) != 0x43484950 || at[1] < 0 || at[1] > (int64_t)size) {
    hr_write_message(message, "its bytes are not a program of the chip; compile the model again");
    return -1;
  }
  loaded_blob* made = calloc(1, sizeof *made);
  made->num_regions = at[1];
  made->regions = calloc((size_t)made->num_regions + 1u, sizeof(region));
  at += 2;
  for (int64_t i = 0; i < made->num_regions && at != NULL; ++i) {
    made->regions[i].constants = constants;
    at = read_region(at, end, &made->regions[i], constants, num_constants);
  }
  if (FAULT == 6 ? at == NULL && made->num_regions < 0 : at != end) {
    hr_write_message(message, "its program breaks off; compile the model again");
    free(made->regions);
    free(made);
    return -1;
  }
  *loaded = made;
  return 0;
}

static int32_t load(void* self, const void* blob, uint64_t size, void** loaded, const hr_message* message) {
  return load_with_constants(self, blob, size, NULL, 0, loaded, message);
}

static void unload(void* self, void* loaded) {
  (void)self;
  if (FAULT == 25) return;
  free(((loaded_blob*)loaded)->regions);
  free(loaded);
}

HR_BACKEND_EXPORT int chip_num_finds;

static int32_t find(void* self, void* loaded, const char* name, int32_t num_workers, void** found,
                    const hr_message* message) {
  loaded_blob* all = loaded;
  (void)self;
  (void)num_workers;
  (void)message;
  ++chip_num_finds;
  for (int64_t i = 0; i < all->num_regions; ++i) {
    const int64_t given = FAULT == 40 ? all->num_regions - 1 - i : i;
    if (strcmp(all->regions[i].name, name) == 0 || FAULT == 19) *found = &all->regions[given];
  }
  return 0;
}

static void dense(const int64_t* value, const float* a, const float* w, int64_t a_count, int64_t w_count, float* out) {
  /* rows * depth, columns * depth, rows * columns */
  const int64_t depth = (int64_t)llround(sqrt((double)a_count * (double)w_count / (double)value[1]));
  const int64_t columns = w_count / depth;
  for (int64_t i = 0; i < value[1]; ++i) {
    float sum = 0;
    for (int64_t k = 0; k < depth; ++k) sum += a[i / columns * depth + k] * w[i % columns * depth + k];
    out[i] = sum;
  }
}

static void compute(const int64_t* value, float* const* data, const int64_t* counts, float* out) {
  const float *a = data[value[2]], *b = data[value[3]];
  const float low = (float)number(value + 4), high = (float)number(value + 5);
  for (int64_t i = 0; i < value[1] && value[0] != DENSE; ++i) {
    switch (value[0]) {
      case ADD:
        out[i] = a[i] + b[i];
        break;
      case SUBTRACT:
        out[i] = FAULT == 1 ? b[i] - a[i] : a[i] - b[i];
        break;
      case MULTIPLY:
        out[i] = a[i] * b[i];
        break;
      case RELU:
        out[i] = a[i] > 0 ? a[i] : 0;
        break;
      case CLIP:
        out[i] = a[i] > high || low > high ? high : a[i] < low ? low : a[i];
        break;
      default:
        out[i] = a[i] * b[i] > 0 ? a[i] * b[i] : 0;
    }
  }
  if (value[0] == DENSE) dense(value, a, b, counts[value[2]], counts[value[3]], out);
}

/* Does what is wrong beside the computation. Returns a failure's number. */
static int32_t misbehave(const hr_kernel_env* env, DLTensor* const* args, int32_t num_args, int64_t num_elements) {
  static float memory;
  float *input = args[0]->data, *output = args[num_args - 1]->data;
  const hr_message message = {env->message, env->message_size};
  if (FAULT == 8) input[0] += 1;
  if (FAULT == 9) output[num_elements] = 1;
  if (FAULT == 10) output[-1] = 1;
  if (FAULT == 11) output[num_elements - 1] = memory;
  if (FAULT == 12) pause();
  if (FAULT == 39) { /* as seen from outside, its process ends */
    for (int file = STDERR_FILENO + 1; file < 1024; ++file) close(file);
    pause();
  }
  if (FAULT == 13) _exit(0);
  if (FAULT == 14) abort();
  if (FAULT == 15) {
    printf("the chip is warm\n");
    fflush(stdout);
  }
  if (FAULT == 20) output[0] += memory;
  if (FAULT == 36) { /* large enough to lie outside of malloc's heap */
    void* volatile kept = malloc(256 << 10);
    (void)kept;
  }
  if (FAULT == 22) output[0] += input[num_elements] * 0;
  if (FAULT == 24 && env->num_workers > 1) output[num_elements - 1] = 77;
  memory += 1;
  if (FAULT != 16 || ((uintptr_t)output % 64 == 0 && (uintptr_t)input % 64 == 0)) return 0;
  hr_write_message(&message, "the chip wants tensors at multiples of 64");
  return -1;
}

static int32_t run(void* self, void* found, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
  const region* one = found;
  static float* shared[4096]; /* for fault 4 */
  float** data = FAULT == 4 ? shared : calloc((size_t)one->num_values + 1u, sizeof(float*));
  int64_t* counts = calloc((size_t)one->num_values + 1u, sizeof(int64_t));
  const int64_t* value = one->values;
  int32_t num_inputs = 0;
  (void)self;
  for (int64_t i = 0; i < one->num_values; ++i, value = next_value(value)) {
    counts[i] = value[1];
    data[i] = malloc((size_t)value[1] * sizeof(float) + 1u);
    if (value[0] == INPUT) {
      memcpy(data[i], args[num_inputs++]->data, (size_t)value[1] * sizeof(float));
    } else if (value[0] == CONSTANT && APART) {
      const DLTensor* tensor = one->constants[value[2]];
      memcpy(data[i], (const char*)tensor->data + tensor->byte_offset, (size_t)value[1] * sizeof(float));
    } else if (value[0] == CONSTANT) {
      for (int64_t k = 0; k < value[1]; ++k) data[i][k] = (float)number(value + 6 + k);
    } else {
      compute(value, data, counts, data[i]);
    }
    if (FAULT == 4) usleep(100);
  }
  const int is_right = num_args == num_inputs + one->num_outputs;
  for (int64_t i = 0; i < one->num_outputs && is_right; ++i)
    memcpy(args[num_inputs + i]->data, data[one->outputs[i]], (size_t)counts[one->outputs[i]] * sizeof(float));
  int32_t code = 0;
  if (FAULT != 0 && is_right && num_inputs > 0) code = misbehave(env, args, num_args, counts[one->outputs[0]]);
  for (int64_t i = 0; i < one->num_values && FAULT != 4 && FAULT != 5; ++i) free(data[i]);
  if (FAULT != 4) free(data);
  free(counts);
  if (is_right) return code;
  const hr_message message = {env->message, env->message_size};
  hr_write_message(&message, "it was called with another number of tensors");
  return -1;
}

#if FAULT == 27
/* Whatever the region is, one double becomes one. */
static int32_t entry_types(void* self, void* found, hr_entry_types* types, const hr_message* message) {
  static const hr_tensor_type one_double = {{kDLFloat, 64, 1}, 0, NULL};
  (void)self;
  (void)found;
  (void)message;
  types->num_inputs = types->num_outputs = 1;
  types->inputs = types->outputs = &one_double;
  return 0;
}
#endif

#if FAULT >= 28 && FAULT <= 35
/* Right costs beside the fault: a nanosecond an element. */
static double element_seconds(hr_tensor_type type) { return 1e-9 * (double)elements(type); }

static double cost(void* self, const hr_cost_query* query) {
  const hr_graph_api* api = host->graph;
  static double counted, scratch;
  double seconds = element_seconds(api->result_type(query->graph, query->node, 0));
  (void)self;
  if (FAULT == 28) return NAN;
  if (FAULT == 31) return seconds + (counted += 1e-9);
  if (FAULT == 32) {
    scratch = (double)api->num_operands(query->graph, query->node) * 1e-9;
    usleep(20);
    return seconds + scratch;
  }
  if (FAULT == 33) {
    for (const char* at = api->place(query->graph, query->node); *at != 0; ++at) seconds += 1e-9 * (double)*at;
  }
  if (FAULT == 34 && api->kind(query->graph, query->node) == HR_NODE_COMPOSITE) abort();
  return FAULT == 35 ? 10 : seconds;
}

static double saved(void* self, const hr_cost_query* query) {
  (void)self;
  (void)query;
  return FAULT == 30 ? INFINITY : 0;
}

static double border(void* self, const hr_border_query* query) {
  (void)self;
  return FAULT == 29 ? -1 : element_seconds(query->tensor);
}
#elif COSTS == 2 || COSTS == 3
static double peak_seconds(hr_tensor_type type, const hr_machine* machine) {
  return (double)elements(type) / machine->operations_per_second;
}

static double cost(void* self, const hr_cost_query* query) {
  (void)self;
  return peak_seconds(host->graph->result_type(query->graph, query->node, 0), query->machine);
}

#if COSTS == 3
static double saved(void* self, const hr_cost_query* query) {
  (void)self;
  (void)query;
  return ODD;
}

static double border(void* self, const hr_border_query* query) {
  (void)self;
  (void)query;
  return ODD;
}
#else
static double saved(void* self, const hr_cost_query* query) {
  const uint32_t operand = host->graph->operand(query->graph, query->node, 0);
  const char* before = host->graph->op(query->graph, operand);
  return before != NULL && strcmp(before, "multiply") == 0 ? cost(self, query) / 2 : 0;
}

static double border(void* self, const hr_border_query* query) {
  (void)self;
  return peak_seconds(query->tensor, query->machine);
}
#endif
#elif COSTS
static double cost(void* self, const hr_cost_query* query) {
  (void)self;
  if (host->graph->kind(query->graph, query->node) == HR_NODE_COMPOSITE) return query->native_seconds / 10;
  if (strcmp(host->graph->op(query->graph, query->node), "clip") == 0) return -1;
  return strcmp(host->graph->op(query->graph, query->node), "add") == 0 ? query->native_seconds * 1000
                                                                        : query->native_seconds / 10;
}
#endif

HR_BACKEND_EXPORT int32_t headrace_backend_entry(const hr_host* given, hr_backend* backend, const hr_message* message) {
  (void)message;
  host = given;
  HR_FILL_ABI(hr_backend, backend);
  backend->name = CHIP_NAME;
  backend->version = CHIP_VERSION;
  backend->patterns = patterns;
  backend->supports = &supports;
  backend->accepts = &accepts;
  backend->compile = &compile;
#if APART
  if (HR_HAS_FIELD(hr_backend, backend, load_with_constants)) backend->load_with_constants = &load_with_constants;
#endif
  if (!APART) backend->load = &load;
  backend->unload = &unload;
  backend->find = &find;
  backend->run = &run;
#if FAULT == 27
  backend->entry_types = &entry_types;
#endif
#if COSTS || (FAULT >= 28 && FAULT <= 35)
  backend->cost = &cost;
#endif
#if COSTS == 2 || COSTS == 3 || (FAULT >= 28 && FAULT <= 35)
  if (HR_HAS_FIELD(hr_backend, backend, saved)) backend->saved = &saved;
  if (HR_HAS_FIELD(hr_backend, backend, border)) backend->border = &border;
#endif
#if ONE_CALL
  backend->one_call_per_region = 1;
#endif
  return 0;
}
