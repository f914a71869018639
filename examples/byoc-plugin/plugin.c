/* A backend in one file of C: convolutions of one image with their bias and relu, by plain loops.
 *
 *     cc -shared -fPIC -O2 -I HEADERS plugin.c -o libconvs.so
 *     headrace compile model.onnx --plugin ./libconvs.so --backends convs -o model.so
 *
 * HEADERS holds headrace/ and dlpack/. docs/bring-your-own-codegen.md says what each function is for. */
#include <headrace/backend_abi.h>
#include <stdlib.h>

static const hr_host* host; /* host->graph reads graphs */

/* Two patterns may have one name: forms of one thing. */
#define OPERANDS "(nn.conv2d(_, const)[attrs groups=1, dilation=[1, 1]], const)"
static const char* const patterns =
    "{ convs.conv_relu: nn.relu(add" OPERANDS "), convs.conv_relu: nn.relu(nn.bias_add" OPERANDS
    "[attrs axis=1]),"
    "  convs.conv: add" OPERANDS ", convs.conv: nn.bias_add" OPERANDS "[attrs axis=1] }";

static hr_tensor_type type_of(const hr_graph* graph, uint32_t node) { return host->graph->result_type(graph, node, 0); }

static uint32_t node_of(const hr_graph* graph, const char* op) {
  for (uint32_t i = 0; i < host->graph->num_nodes(graph); ++i) {
    const char* name = host->graph->op(graph, i);
    if (name != NULL && strcmp(name, op) == 0) return i;
  }
  return 0;
}

/* The bias is the second operand of nn.bias_add, and either one of add. */
static uint32_t bias_of(const hr_graph* match) {
  const uint32_t add = node_of(match, "add"), sum = add != 0 ? add : node_of(match, "nn.bias_add");
  const uint32_t first = host->graph->operand(match, sum, 0);
  return host->graph->kind(match, first) == HR_NODE_CONST ? first : host->graph->operand(match, sum, 1);
}

/* ---- what it takes: no op by itself, only what the patterns match ---- */

static void supports(void* self, const hr_graph* graph, uint32_t node, hr_verdict* verdict) {
  (void)self, (void)graph, (void)node;
  verdict->reason = HR_REASON_OP_UNSUPPORTED;
  hr_write_message(&verdict->message, "the backend computes only convolutions with their bias");
}

static int has_text(const hr_graph* graph, uint32_t node, const char* attribute, const char* text) {
  return strcmp(host->graph->find_attr(graph, node, attribute).texts[0], text) == 0;
}

/* A pattern leaves open what its attributes do not name. An empty out_layout is that of the data. */
static void accepts(void* self, const char* pattern, const hr_graph* match, hr_verdict* verdict) {
  const hr_graph_api* api = host->graph;
  const uint32_t conv = node_of(match, "nn.conv2d");
  const hr_tensor_type x = type_of(match, api->operand(match, conv, 0)), y = type_of(match, conv);
  const hr_tensor_type bias = type_of(match, bias_of(match));
  (void)self, (void)pattern;
  const int is_image = x.dtype.code == kDLFloat && x.dtype.bits == 32 && x.ndim == 4 && x.shape[0] == 1;
  const int is_nchw = has_text(match, conv, "data_layout", "NCHW");
  const int is_oihw = has_text(match, conv, "kernel_layout", "OIHW");
  const int gives_nchw = has_text(match, conv, "out_layout", "") || has_text(match, conv, "out_layout", "NCHW");
  const int is_per_channel = node_of(match, "nn.bias_add") != 0 ||
                             (bias.ndim == 3 && bias.shape[0] == y.shape[1] && bias.shape[1] * bias.shape[2] == 1);
  if (is_image && is_nchw && is_oihw && gives_nchw && is_per_channel) return;
  verdict->reason = HR_REASON_SHAPE_UNSUPPORTED;
  hr_write_message(&verdict->message,
                   "it is not of one float32 image in NCHW and weights in OIHW, with a bias for each channel");
}

/* ---- the blob: the name of the region, the number of its layers, and each of them with its data ---- */

typedef struct {
  int64_t input, has_relu; /* the layer that it reads; -1: the region's input */
  int64_t c, h, w, k, p, q, r, s, stride_h, stride_w, top, left;
} layer; /* k * c * r * s weights and k biases follow */

typedef struct {
  char* bytes;
  size_t size;
} buffer;

static void put(buffer* out, const void* bytes, int64_t size) {
  out->bytes = realloc(out->bytes, out->size + (size_t)size);
  memcpy(out->bytes + out->size, bytes, (size_t)size);
  out->size += (size_t)size;
}

static void put_layer(buffer* out, const hr_graph* match, int64_t input, int64_t has_relu) {
  const hr_graph_api* api = host->graph;
  const uint32_t conv = node_of(match, "nn.conv2d"), w = api->operand(match, conv, 1);
  const int64_t *x = type_of(match, api->operand(match, conv, 0)).shape, *y = type_of(match, conv).shape;
  const int64_t* k = type_of(match, w).shape;
  const hr_attr strides = api->find_attr(match, conv, "strides"), pads = api->find_attr(match, conv, "padding");
  const layer one = {input,
                     has_relu,
                     x[1],
                     x[2],
                     x[3],
                     y[1],
                     y[2],
                     y[3],
                     k[2],
                     k[3],
                     strides.integers[0],
                     strides.integers[1],
                     pads.integers[0],
                     pads.integers[1]};
  put(out, &one, sizeof one);
  put(out, api->constant(match, w).tensor->data, one.k * one.c * one.r * one.s * (int64_t)sizeof(float));
  put(out, api->constant(match, bias_of(match)).tensor->data, one.k * (int64_t)sizeof(float));
}

/* A region of a chain of layers with one input and one output; others are the host's. */
static const char* put_region(buffer* out, const hr_graph* graph) {
  const hr_graph_api* api = host->graph;
  int64_t num_layers = 0, num_inputs = 0;
  put(out, api->name(graph), (int64_t)strlen(api->name(graph)) + 1);
  const size_t count_at = out->size;
  put(out, &num_layers, sizeof num_layers);
  for (uint32_t node = 0; node < api->num_nodes(graph); ++node) {
    if (api->kind(graph, node) == HR_NODE_INPUT) ++num_inputs;
    if (api->kind(graph, node) == HR_NODE_CALL) return "it has a call that none of the patterns matched";
    if (api->kind(graph, node) != HR_NODE_COMPOSITE) continue;
    const uint32_t from = api->operand(graph, node, 0);
    const int is_input = api->kind(graph, from) == HR_NODE_INPUT;
    if (!is_input && from + 1 != node) return "its layers do not form a chain";
    put_layer(out, api->body(graph, node), is_input ? -1 : num_layers - 1,
              strcmp(api->op(graph, node), "convs.conv_relu") == 0);
    ++num_layers;
  }
  memcpy(out->bytes + count_at, &num_layers, sizeof num_layers);
  const int is_chain = num_inputs == 1 && api->num_outputs(graph) == 1;
  return is_chain && api->output(graph, 0, NULL) + 1 == api->num_nodes(graph) ? NULL : "its layers do not form a chain";
}

static int32_t compile(void* self, const hr_compile_request* request, const hr_message* message) {
  (void)self;
  if (request->options.count > 0) {
    hr_write_message(message, "it has no options");
    return 1;
  }
  for (uint64_t i = 0; i < request->num_graphs; ++i) {
    buffer out = {NULL, 0};
    const char* fault = put_region(&out, request->graphs[i]);
    if (fault == NULL) {
      request->emit(request->sink, out.bytes, out.size, &i, 1);
    } else {
      request->refuse(request->sink, i, HR_REASON_SHAPE_UNSUPPORTED, fault);
    }
    free(out.bytes);
  }
  return 0;
}

/* ---- running: the blob is what runs; only its end is checked, because artifacts have a checksum ---- */

static int32_t load(void* self, const void* blob, uint64_t size, void** loaded, const hr_message* message) {
  const char *at = blob, *end = at + size, *zero = size > 0 ? memchr(at, 0, size) : NULL;
  int64_t num_layers = 0;
  (void)self;
  if (zero != NULL && end - zero > 8) memcpy(&num_layers, zero + 1, sizeof num_layers);
  if (zero != NULL) at = zero + 9;
  for (int64_t i = 0; zero != NULL && i < num_layers && at != NULL; ++i) {
    layer one;
    if (end - at < (int64_t)sizeof one) break;
    memcpy(&one, at, sizeof one);
    const int64_t limit = 1 << 14;
    const int fits = one.k > 0 && one.k < limit && one.c > 0 && one.c < limit && one.r > 0 && one.r < 99 && one.s > 0 &&
                     one.s < 99 && one.input < i && one.input >= -1;
    const int64_t bytes = fits ? (one.k * one.c * one.r * one.s + one.k) * (int64_t)sizeof(float) : 0;
    if (!fits || end - at - (int64_t)sizeof one < bytes) break;
    at += (int64_t)sizeof one + bytes;
  }
  if (zero == NULL || num_layers < 1 || at != end) {
    hr_write_message(message, "its bytes are not layers of this version; compile the model again");
    return -1;
  }
  *loaded = (void*)(uintptr_t)blob;
  return 0;
}

static int32_t find(void* self, void* loaded, const char* region, int32_t num_workers, void** found,
                    const hr_message* message) {
  (void)self, (void)num_workers, (void)message;
  *found = strcmp(loaded, region) == 0 ? loaded : NULL;
  return 0;
}

static void convolve(const layer* one, const float* weights, const float* bias, const float* x, float* y) {
  for (int64_t i = 0; i < one->k * one->p * one->q; ++i) {
    const int64_t k = i / (one->p * one->q), p = i / one->q % one->p, q = i % one->q;
    float sum = bias[k];
    for (int64_t c = 0; c < one->c; ++c) {
      for (int64_t rs = 0; rs < one->r * one->s; ++rs) {
        const int64_t h = p * one->stride_h - one->top + rs / one->s, w = q * one->stride_w - one->left + rs % one->s;
        if (h < 0 || w < 0 || h >= one->h || w >= one->w) continue;
        sum += x[(c * one->h + h) * one->w + w] * weights[(k * one->c + c) * one->r * one->s + rs];
      }
    }
    y[i] = one->has_relu && sum < 0 ? 0 : sum;
  }
}

static int32_t run(void* self, void* region, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args) {
  const char* at = (const char*)region + strlen(region) + 1;
  const float* x = args[0]->data;
  float* memory = NULL; /* result of the layer before */
  int64_t num_layers;
  (void)self, (void)env, (void)num_args;
  memcpy(&num_layers, at, sizeof num_layers);
  at += sizeof num_layers;
  for (int64_t i = 0; i < num_layers; ++i) {
    layer one;
    memcpy(&one, at, sizeof one);
    const int64_t num_weights = one.k * one.c * one.r * one.s;
    float* data = malloc((size_t)(num_weights + one.k) * sizeof(float)); /* the blob is not aligned */
    float* y = i + 1 == num_layers ? args[1]->data : malloc((size_t)(one.k * one.p * one.q) * sizeof(float));
    memcpy(data, at + sizeof one, (size_t)(num_weights + one.k) * sizeof(float));
    convolve(&one, data, data + num_weights, x, y);
    free(data);
    free(memory);
    x = memory = y;
    at += (int64_t)sizeof one + (num_weights + one.k) * (int64_t)sizeof(float);
  }
  return 0;
}

HR_BACKEND_EXPORT int32_t headrace_backend_entry(const hr_host* given, hr_backend* backend, const hr_message* message) {
  (void)message;
  host = given;
  HR_FILL_ABI(hr_backend, backend);
  backend->name = "convs";
  backend->version = "1";
  backend->patterns = patterns;
  backend->supports = &supports;
  backend->accepts = &accepts;
  backend->compile = &compile;
  backend->load = &load;
  backend->find = &find;
  backend->run = &run;
  return 0;
}
