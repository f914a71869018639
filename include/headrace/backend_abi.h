/* The backend ABI: how a shared library of somebody else takes parts of models. Standalone C; nothing else of Headrace
 * is needed to write a backend.
 *
 * A library exports one function, headrace_backend_entry. The host opens the library when a user names its path, calls
 * the entry once, and then calls the functions of the table that the entry filled in: while a model is compiled,
 * `supports`, `accepts` and `compile`; where it runs, `load`, `find` and `run`. A program that only runs models never
 * calls the first three.
 *
 *   model -> patterns -> supports -> regions -> compile -> blobs in the artifact -> load -> find -> run
 *
 * Every function may be called from several threads at once. None may throw, exit or write to standard output. A
 * function that can fail returns 0, or another number after writing a sentence into the message that it was given: what
 * is wrong, and what the user should do.
 *
 * Versions. HR_BACKEND_ABI_MAJOR changes when a table changes its meaning; MINOR, when fields are appended. Each table
 * begins with hr_abi, which says how many bytes of it its owner filled in: read no field beyond them
 * (HR_HAS_FIELD). A host of major version v loads backends of HR_BACKEND_ABI_OLDEST to v. */
#ifndef HEADRACE_BACKEND_ABI_H_
#define HEADRACE_BACKEND_ABI_H_

#include <headrace/kernel_abi.h>
#include <headrace/reason.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HR_BACKEND_ABI_MAJOR 1u
#define HR_BACKEND_ABI_MINOR 4u
#define HR_BACKEND_ABI_OLDEST 1u

/* The first member of each table. */
typedef struct hr_abi {
  uint32_t size; /* bytes of the table that its owner filled in */
  uint16_t major;
  uint16_t minor;
} hr_abi;

/* Whether the owner of the table at `table` filled in its member `field`. */
#define HR_HAS_FIELD(type, table, field) ((table)->abi.size >= offsetof(type, field) + sizeof((table)->field))

/* Where a function writes the sentence of a failure, NUL-terminated. `data` may be NULL: nobody reads it. */
typedef struct hr_message {
  char* data;
  uint64_t size;
} hr_message;

static inline void hr_write_message(const hr_message* message, const char* text) {
  uint64_t length = (uint64_t)strlen(text);
  if (message == NULL || message->data == NULL || message->size == 0) return;
  if (length >= message->size) length = message->size - 1;
  while (length > 0 && (text[length] & 0xC0) == 0x80) --length; /* no part of a character of UTF-8 */
  memcpy(message->data, text, (size_t)length);
  message->data[length] = 0;
}

/* ---- the view of a graph ---- */

/* A part of a model. Nodes are numbered from 0 in topological order: operands before what uses them. A graph and all
 * that is read from it live until the call that it was given to returns; the host owns them, and nothing changes
 * them. */
typedef struct hr_graph hr_graph;

typedef enum hr_node_kind {
  HR_NODE_INPUT = 0,    /* a parameter of the graph; inputs come in the order of the parameters' tensors */
  HR_NODE_CONST = 1,    /* a tensor that is known when the model is compiled */
  HR_NODE_CALL = 2,     /* a call of an op */
  HR_NODE_TUPLE = 3,    /* its operands, as one value */
  HR_NODE_ITEM = 4,     /* result `index` of its operand, a call or composite that has several */
  HR_NODE_COMPOSITE = 5 /* a call of a graph that the backend's pattern of this name matches */
} hr_node_kind;
/* Later versions may have further kinds. A backend refuses a graph with a kind that it does not know. */

/* The type of one tensor. */
typedef struct hr_tensor_type {
  DLDataType dtype;
  int32_t ndim;
  const int64_t* shape; /* -1: only a run knows the size */
} hr_tensor_type;

typedef enum hr_attr_kind {
  HR_ATTR_NONE = 0,    /* no value: the op's default holds */
  HR_ATTR_INTEGER = 1, /* `integers` has one value; bools are 0 and 1 */
  HR_ATTR_REAL = 2,    /* `reals` has one */
  HR_ATTR_TEXT = 3,    /* `texts` has one; dtypes and layouts are texts */
  HR_ATTR_INTEGERS = 4,
  HR_ATTR_REALS = 5,
  HR_ATTR_TEXTS = 6,
  HR_ATTR_OTHER = 7 /* lists in a list or of several kinds, and what cannot be shown: `texts` has one, for messages */
} hr_attr_kind;

typedef struct hr_attr {
  const char* name;
  int32_t kind; /* hr_attr_kind */
  uint64_t count;
  const int64_t* integers;
  const double* reals;
  const char* const* texts;
} hr_attr;

typedef struct hr_constant {
  const char* content_id; /* letters and digits; equal for constants of equal bytes */
  const DLTensor* tensor; /* contiguous, on the CPU; NULL when the node is not a const */
} hr_constant;

/* How a backend reads graphs. Numbers of nodes, operands, results and attributes that a graph does not have give 0,
 * NULL, or an empty struct. */
typedef struct hr_graph_api {
  hr_abi abi;
  const char* (*name)(const hr_graph* graph); /* a region's name, which `find` is called with */
  uint32_t (*num_nodes)(const hr_graph* graph);
  uint32_t (*num_outputs)(const hr_graph* graph);
  /* The node of output `index`, of which it is the result `*result`. */
  uint32_t (*output)(const hr_graph* graph, uint32_t index, uint32_t* result);
  int32_t (*kind)(const hr_graph* graph, uint32_t node); /* hr_node_kind */
  uint32_t (*num_operands)(const hr_graph* graph, uint32_t node);
  uint32_t (*operand)(const hr_graph* graph, uint32_t node, uint32_t index); /* the number of a node */
  uint32_t (*num_results)(const hr_graph* graph, uint32_t node);             /* tensors of its value, in order */
  hr_tensor_type (*result_type)(const hr_graph* graph, uint32_t node, uint32_t index);
  const char* (*op)(const hr_graph* graph, uint32_t node);      /* a call's op, "nn.conv2d", or a composite's pattern */
  uint32_t (*op_version)(const hr_graph* graph, uint32_t node); /* rises when an op changes its meaning */
  uint32_t (*index)(const hr_graph* graph, uint32_t node);      /* the result that an item takes */
  const hr_graph* (*body)(const hr_graph* graph, uint32_t node); /* a composite's body; its inputs are the operands */
  hr_constant (*constant)(const hr_graph* graph, uint32_t node); /* the value of a const */
  uint32_t (*num_attrs)(const hr_graph* graph, uint32_t node);   /* the number of a call's attributes */
  hr_attr (*attr)(const hr_graph* graph, uint32_t node, uint32_t index);
  /* The attribute of that name; `name` is NULL in the answer where the op has none. */
  hr_attr (*find_attr)(const hr_graph* graph, uint32_t node, const char* name);
  const char* (*place)(const hr_graph* graph, uint32_t node); /* where the model has it, for messages; may be "" */

  /* Since minor version 4: values in lists, which may be lists themselves, such as the pad_width of nn.pad. `path` has
   * `depth` indices: of an item of the attribute's list, of an item of that item, and so on.
   * The number of items of the list there; 0 where there is no list. */
  uint64_t (*num_items)(const hr_graph* graph, uint32_t node, const char* name, const uint64_t* path, uint32_t depth);
  /* The value there, with the name of the attribute; `name` is NULL in the answer where there is none. */
  hr_attr (*item)(const hr_graph* graph, uint32_t node, const char* name, const uint64_t* path, uint32_t depth);
} hr_graph_api;

/* ---- the host ---- */

typedef struct hr_host {
  hr_abi abi;
  const char* version;       /* Headrace's version, for messages */
  const hr_graph_api* graph; /* NULL in a program that only runs models */
} hr_host;

/* ---- compiling ---- */

/* Whether a backend takes a call, and why not. */
typedef struct hr_verdict {
  int32_t reason; /* hr_reason: HR_REASON_NONE says yes; no is HR_REASON_OP_UNSUPPORTED and its neighbours.
                   * HR_REASON_BACKEND_FAILED: the backend could not answer */
  /* If it is a no, a sentence that is read after "NAME: ", the backend's name; "it" in it is the op: "its data is not
   * float32". */
  hr_message message;
} hr_verdict;

/* The options that the user gave for this backend, of kinds HR_ATTR_INTEGER, REAL and TEXT. The kind says how the user
 * gave an option: the command line gives texts, and Python also numbers. So read `integers`, `reals` or `texts` without
 * the kind: each that is not NULL has one value. A text that is a number has these, a number has its text; the texts
 * "true" and "false" are the integers 1 and 0. `integers` is NULL for what is no integer, `reals` for what is no
 * number. An earlier host fills in that of the kind alone. */
typedef struct hr_options {
  uint64_t count;
  const hr_attr* items;
} hr_options;

typedef struct hr_compile_sink hr_compile_sink; /* the host's */

typedef struct hr_compile_request {
  hr_abi abi;
  uint64_t num_graphs;
  const hr_graph* const* graphs; /* the regions */
  const char* triple;            /* machine that the model is compiled for: "x86_64-unknown-linux-gnu" */
  const char* cpu;               /* "znver4" */
  hr_options options;
  hr_compile_sink* sink;
  /* Gives the host a blob, which is copied, that holds the code of some of the graphs, each of which is emitted once.
   * Returns -1 where the host does not take it; a note of the compile then says why. */
  int32_t (*emit)(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t* graphs, uint64_t num_graphs);
  /* Says that a graph is not compiled, and why, in at most 1,023 bytes; the host then compiles it by itself, also where
   * the graph was emitted before. Returns -1 for a graph that is not there. */
  int32_t (*refuse)(hr_compile_sink* sink, uint64_t graph, int32_t reason, const char* message);

  /* Since minor version 1, for backends that fill in `load_with_constants`: emits a blob that leaves its constants to
   * the host, which stores each content once in a file, for its own code too. `constants` has the content_id of each,
   * as the graphs of this request give them; `load_with_constants` gets them in this order. */
  int32_t (*emit_with_constants)(hr_compile_sink* sink, const void* blob, uint64_t size, const uint64_t* graphs,
                                 uint64_t num_graphs, const char* const* constants, uint64_t num_constants);
} hr_compile_request;

/* ---- the backend ---- */

/* The types of a region's tensors, as the loaded code has them. A size of -1: it takes any. */
typedef struct hr_entry_types {
  uint32_t num_inputs;
  uint32_t num_outputs;
  const hr_tensor_type* inputs;
  const hr_tensor_type* outputs;
} hr_entry_types;

/* The machine that a plan is for: numbers of the host's table of processors, not measured in this process. Rates are
 * those of one thread, in bytes a second that it reads. Since minor version 3. */
typedef struct hr_machine {
  hr_abi abi;
  double operations_per_second; /* float32 at the peak; a multiply-add is two operations */
  int64_t l2_bytes;             /* one core's */
  int64_t l3_bytes;             /* shared by cores */
  double l2_rate;
  double l3_rate;
  double memory_rate;
  double all_memory_rate; /* all threads together */
  double fork_seconds;    /* starting a loop on other threads, and waiting for them */
} hr_machine;

/* A call whose time the host asks for. Since minor version 2. */
typedef struct hr_cost_query {
  hr_abi abi;
  const hr_graph* graph; /* the call, whose operands are inputs, constants and tuples of them */
  uint32_t node;         /* its number: a call of an op or a composite, which the backend takes */
  int32_t num_threads;
  double native_seconds; /* the host's estimate for its own code */

  const hr_machine* machine; /* since minor version 3 */
} hr_cost_query;

/* A tensor that enters or leaves a region. Since minor version 3. */
typedef struct hr_border_query {
  hr_abi abi;
  hr_tensor_type tensor;
  int32_t num_threads;
  const hr_machine* machine;
} hr_border_query;

typedef struct hr_backend {
  hr_abi abi;
  const char* name;    /* a word: what users write after --backends */
  const char* version; /* the backend's own; artifacts record it */
  void* self;          /* given to each function below */

  /* The names of patterns, "NAME.word", and the patterns, in the order of their priority, in Headrace's text form,
   * which docs/dataflow-patterns.md describes: { mine.conv_relu: nn.relu(nn.conv2d(_, const)[attrs groups=1,
   * data_layout="NCHW"]) } Several patterns may have one name: forms of one thing. NULL: none. */
  const char* patterns;
  /* Says whether the backend takes a call: node `node` of `graph`, whose operands are inputs and constants, and tuples
   * of them, as concatenate has one. */
  void (*supports)(void* self, const hr_graph* graph, uint32_t node, hr_verdict* verdict);
  /* Says whether the backend takes what a pattern matched. NULL: it takes all matches. It is not asked about matches
   * that a program marks by hand: `compile` gets these as they are, and refuses what it does not take. */
  void (*accepts)(void* self, const char* pattern, const hr_graph* match, hr_verdict* verdict);
  /* Compiles regions: each graph of the request is emitted or refused. A failure is for what the user must mend, such
   * as a wrong option: it ends the compile. Since minor version 3, a request without graphs asks for that alone. */
  int32_t (*compile)(void* self, const hr_compile_request* request, const hr_message* message);

  /* Makes a blob ready to run. The bytes live as long as the loaded thing. */
  int32_t (*load)(void* self, const void* blob, uint64_t size, void** loaded, const hr_message* message);
  void (*unload)(void* self, void* loaded);
  /* Finds the region of that name and makes it ready to run on `num_workers` threads: `*found` is what `run` is called
   * with, or NULL when there is none. It lives as long as `loaded`. The host asks once for a name and a number of
   * threads, and runs what it got from any number of threads at once. */
  int32_t (*find)(void* self, void* loaded, const char* region, int32_t num_workers, void** found,
                  const hr_message* message);
  /* Runs a region: args are the tensors of its inputs, then of its outputs, with the promises of kernel_abi.h. Works on
   * env->num_workers threads, by env->parallel_for or by its own; that is the number that `find` was called with. A
   * failure is written to env->message. */
  int32_t (*run)(void* self, void* region, const hr_kernel_env* env, DLTensor* const* args, int32_t num_args);

  /* Since minor version 1: what `load` does, for blobs of `emit_with_constants`. The tensors are contiguous, on the
   * CPU, and to be read only; they, and the array of them, live as long as the loaded thing. A backend that fills it in
   * may leave out `load`: blobs without constants come here too. */
  int32_t (*load_with_constants)(void* self, const void* blob, uint64_t size, const DLTensor* const* constants,
                                 uint64_t num_constants, void** loaded, const hr_message* message);
  /* Since minor version 1, may be NULL: says which types a region that `find` found has by what was loaded, not by what
   * it was compiled from. The host compares them with those of the model when it opens a file, so that a blob of
   * another version or of other sizes is found before it runs. `*types` comes as zeroes; without outputs it says
   * nothing. What it points to lives as long as `loaded`. */
  int32_t (*entry_types)(void* self, void* region, hr_entry_types* types, const hr_message* message);
  /* Since minor version 2, may be NULL: returns the seconds that the backend takes for a call, or a number below 0
   * where it does not know; then the host's estimate for its own code counts. Placement by cost compares them. NaN and
   * more than 1000 end the compile with an error at the call. */
  double (*cost)(void* self, const hr_cost_query* query);
  /* Since minor version 2: 1 for a backend that computes one call, or one match of a pattern, at a time. Each is a
   * region of its own then. 0: calls that hand values to each other become one region. */
  int32_t one_call_per_region;
  /* Since minor version 3, may be NULL: returns the seconds that a call costs less than `cost` says where its region
   * also computes the calls that its operands come from. The query's graph has these calls, whose values nothing else
   * uses; its node is the last call. It may be asked again with fewer of them, the operands first. 0: nothing is
   * saved. NaN, an infinity and a number below 0 count as 0, more than the call costs as all of that. */
  double (*saved)(void* self, const hr_cost_query* query);
  /* Since minor version 3, may be NULL: returns the seconds that a tensor takes to enter or to leave a region, beside
   * the call of the region, such as those of a change of layout. `cost` does not count them. NaN and a number below 0
   * count as 0, more than 1000 as 1000. */
  double (*border)(void* self, const hr_border_query* query);
  /* Since minor version 4, may be NULL: returns 0 if the backend loads the blobs of another version of it, the
   * `recorded` one, which compiled the file. Otherwise it may say why not. The host asks before it loads such a blob.
   * Where the function is NULL, a library that was built with this header or a later one loads no blobs of other
   * versions, and an earlier one gets all of them. */
  int32_t (*accepts_version)(void* self, const char* recorded, const hr_message* message);
} hr_backend;

/* The function that a library exports. `backend` comes with its abi filled in as the host knows it, and zeroes. The
 * function calls HR_FILL_ABI, which writes the version that it was built with, and then fills in the rest; a field of a
 * later minor version only where HR_HAS_FIELD says that the host has room for it. It keeps `host`, which is never
 * freed. Returns 0, or another number after writing into `message` why the backend cannot work in this process. */
typedef int32_t (*hr_backend_entry)(const hr_host* host, hr_backend* backend, const hr_message* message);
#define HR_BACKEND_ENTRY "headrace_backend_entry"

/* Writes into a table's `abi` what this header knows of it, at most what the other side has room for. */
#define HR_FILL_ABI(type, table)                                                                                \
  do {                                                                                                          \
    if ((table)->abi.size == 0 || (table)->abi.size > sizeof(type)) (table)->abi.size = (uint32_t)sizeof(type); \
    (table)->abi.major = HR_BACKEND_ABI_MAJOR;                                                                  \
    (table)->abi.minor = HR_BACKEND_ABI_MINOR;                                                                  \
  } while (0)

/* Stands before the declaration of headrace_backend_entry, which has the type hr_backend_entry: C linkage, visible. */
#ifdef __cplusplus
#define HR_BACKEND_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define HR_BACKEND_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
}
#endif

#endif /* HEADRACE_BACKEND_ABI_H_ */
