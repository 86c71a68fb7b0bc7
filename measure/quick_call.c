/* Calls a kernel from Python in C: checks the arguments, runs the kernel, and makes the results.
 *
 * quick_call(inputs, out) returns the result, a tuple of several, or `out`. If anything must be converted, refused or explained, it does nothing and returns
 * None: `Kernel` then takes its slow path. It accepts arrays whose type is exactly numpy.ndarray, and tensors whose type is torch.Tensor or Parameter.
 * It reads NumPy arrays by the buffer protocol, and makes them by NumPy's table of C functions. It exchanges tensors by DLPack's table of C functions, or by
 * their methods if PyTorch has no such table (before 2.10).
 *
 * Python   Only functions of the stable ABI are used. They are declared here: Python's headers are not installed everywhere, and one library serves all
 *          versions. They are weak, because the program that loads this library provides them.
 * Copies   An input that is not aligned for kernels is copied to memory of the plan. So is an unaligned output, or one that overlaps another argument.
 * Results  Each result has a block of memory. It is given back when the last array, tensor or view of it is gone, on any thread. One block of each output is
 *          kept for the next call.
 * Threads  The GIL is released while the kernel runs. The caller lets only one thread at a time use a plan. Any operation that may run Python code, which may
 *          call the same kernel, comes before the copies or after the kernel.
 */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64
#define MOST_DIMENSIONS 16
#define MOST_ARGUMENTS 64

/* Python ------------------------------------------------------------------------------------------------------------------------------------------- */

typedef struct object object;
typedef ptrdiff_t length;
typedef struct {
  void *buf;
  object *obj;
  length len, itemsize;
  int readonly, ndim;
  char *format;
  length *shape, *strides, *suboffsets;
  void *internal;
} buffer;
typedef struct {
  const char *name;
  object *(*function)(object *, object *const *, length);
  int flags;
  const char *text;
} method;
#define FASTCALL 0x0080
#define STRIDED_WITH_FORMAT 0x001c
#define WRITABLE 0x0001
#define EQUAL 2 /* of PyObject_RichCompareBool */

#define PYTHON __attribute__((weak)) extern
PYTHON object _Py_NoneStruct, _Py_TrueStruct, _Py_FalseStruct;
PYTHON void Py_IncRef(object *), Py_DecRef(object *), PyErr_Clear(void), PyEval_RestoreThread(void *);
PYTHON void *PyEval_SaveThread(void), *PyCapsule_GetPointer(object *, const char *);
PYTHON object *PyObject_Type(object *), *PyObject_CallMethodObjArgs(object *, object *, ...), *PyUnicode_InternFromString(const char *);
PYTHON object *PyObject_GetAttr(object *, object *), *PyObject_CallFunctionObjArgs(object *, ...), *PyTuple_New(length), *PyTuple_GetItem(object *, length);
PYTHON length PyTuple_Size(object *);
PYTHON int PyObject_RichCompareBool(object *, object *, int);
PYTHON uint64_t PyLong_AsUnsignedLongLong(object *);
PYTHON int PyTuple_SetItem(object *, length, object *);
PYTHON int PyObject_GetBuffer(object *, buffer *, int), PyBuffer_IsContiguous(const buffer *, char);
PYTHON void PyBuffer_Release(buffer *);
PYTHON object *PyCapsule_New(void *, const char *, void (*)(object *)), *PyCFunction_NewEx(method *, object *, object *);

/* DLPack ------------------------------------------------------------------------------------------------------------------------------------------- */

typedef struct {
  void *data;
  int32_t device, device_number, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} dl_tensor;
typedef struct dl_managed {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct dl_managed *);
  uint64_t flags;
  dl_tensor tensor;
} dl_managed;
typedef struct {
  uint32_t major, minor;
  void *previous, *allocator, *from_object;
  int (*to_object)(dl_managed *, void **);
  int (*look)(void *, dl_tensor *);
} dl_functions;
#define DL_CPU 1

/* Description of a kernel -------------------------------------------------------------------------------------------------------------------------- */

enum role { INPUT, OUTPUT, BOUND };

/* `quick_call.py` fills it in. */
struct argument {
  int64_t role, dimensions, bytes;
  int64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS]; /* strides in elements */
  char format[8];                                           /* of the buffer protocol */
  int64_t code, bits;                                       /* of DLPack */
  object *dtype;                                            /* of NumPy */
  object *tensor_dtype, *tensor_shape;                      /* of PyTorch; None without */
  void *address;                                            /* of a bound constant */
};

struct description {
  void (*kernel)(void *const *, unsigned char *, void *, void *);
  void *workspace, *parallel_for, *pool;
  int64_t arguments, most_copied;
  struct argument *list;
  object *array_type, *tensor_type, *parameter_type; /* array_type instead of the others: tensors are not accepted */
  object *from_array;                                /* torch.from_numpy */
  object *keep;                                      /* owns what the pointers here refer to */
  void **numpy;
  dl_functions *torch;
};

/* The blocks of one output. It lives as long as the plan, or any result made from it. */
struct blocks {
  atomic_long users;
  _Atomic(void *) kept; /* a block, NULL, or CLOSED */
  int64_t shape[MOST_DIMENSIONS], strides[MOST_DIMENSIONS];
};
static char closed;
#define CLOSED ((void *)&closed)

struct block {
  struct blocks *owner;
  dl_managed managed;
};
#define HEAD ((sizeof(struct block) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT)
static void *data_of(struct block *block) { return (char *)block + HEAD; }

enum name { IS_NEG, IS_CPU, IS_CONTIGUOUS, DTYPE, SHAPE, DATA_PTR, NAMES };
static const char *const spelled[NAMES] = {"is_neg", "is_cpu", "is_contiguous", "dtype", "shape", "data_ptr"};

struct plan {
  struct description about;
  struct argument *arguments;
  struct blocks **blocks;
  void **scratch; /* copies, made when first needed */
  object *names[NAMES], *tuple_type;
  int64_t inputs, outputs;
};

static struct blocks *blocks_of(const struct argument *argument) {
  struct blocks *blocks = calloc(1, sizeof *blocks);
  if (!blocks) return NULL;
  atomic_init(&blocks->users, 1);
  memcpy(blocks->shape, argument->shape, sizeof blocks->shape);
  memcpy(blocks->strides, argument->strides, sizeof blocks->strides);
  return blocks;
}

static void release(struct blocks *owner) {
  if (atomic_fetch_sub(&owner->users, 1) == 1) free(owner);
}

/* Ends a result. May be called on any thread, without the GIL. */
static void give_back(struct block *block) {
  struct blocks *owner = block->owner;
  void *none = NULL;
  if (!atomic_compare_exchange_strong(&owner->kept, &none, block)) free(block);
  release(owner);
}

static struct block *borrow(struct blocks *owner, const struct argument *argument) {
  struct block *block = atomic_exchange(&owner->kept, NULL);
  if (!block) block = aligned_alloc(ALIGNMENT, HEAD + ((size_t)argument->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  if (!block) return NULL;
  block->owner = owner;
  atomic_fetch_add(&owner->users, 1);
  return block;
}

/* Arguments ---------------------------------------------------------------------------------------------------------------------------------------- */

enum kind { OTHER, ARRAY, TENSOR };

static object *type_of(object *value) {
  object *type = PyObject_Type(value);
  Py_DecRef(type); /* the value still holds it */
  return type;
}

static enum kind kind_of(const struct plan *plan, object *value) {
  object *type = type_of(value);
  if (type == plan->about.array_type) return ARRAY;
  if (type == plan->about.tensor_type || type == plan->about.parameter_type) return TENSOR;
  return OTHER;
}

static void *address_of_array(object *value, const struct argument *argument) {
  buffer view;
  if (PyObject_GetBuffer(value, &view, STRIDED_WITH_FORMAT | (argument->role == OUTPUT ? WRITABLE : 0))) {
    PyErr_Clear();
    return NULL;
  }
  int fits = view.ndim == argument->dimensions && view.format && !strcmp(view.format, argument->format) && PyBuffer_IsContiguous(&view, 'C');
  for (int64_t d = 0; fits && d < argument->dimensions; d++) fits = view.shape[d] == argument->shape[d];
  void *address = fits ? view.buf : NULL;
  PyBuffer_Release(&view); /* the caller holds the array */
  return address;
}

/* Returns 1 if Python's answer is `True`; errors are cleared. */
static int is_true(object *answer) {
  if (!answer) PyErr_Clear();
  else Py_DecRef(answer);
  return answer == &_Py_TrueStruct;
}

static int is_false(object *answer) {
  if (!answer) PyErr_Clear();
  else Py_DecRef(answer);
  return answer == &_Py_FalseStruct;
}

static object *said(const struct plan *plan, object *value, enum name name) { return PyObject_CallMethodObjArgs(value, plan->names[name], NULL); }

static int has(const struct plan *plan, object *value, enum name name, object *wanted) {
  object *found = PyObject_GetAttr(value, plan->names[name]);
  int same = found && wanted ? PyObject_RichCompareBool(found, wanted, EQUAL) : -1;
  if (found) Py_DecRef(found);
  if (same < 0) PyErr_Clear();
  return same > 0;
}

/* Uses the tensor's methods. */
static void *asked_address(const struct plan *plan, object *value, const struct argument *argument) {
  if (!has(plan, value, DTYPE, argument->tensor_dtype) || !has(plan, value, SHAPE, argument->tensor_shape)) return NULL;
  if (!has(plan, value, IS_CPU, &_Py_TrueStruct) || !is_true(said(plan, value, IS_CONTIGUOUS))) return NULL;
  object *place = said(plan, value, DATA_PTR);
  uint64_t address = place ? PyLong_AsUnsignedLongLong(place) : 0;
  if (place) Py_DecRef(place);
  PyErr_Clear();
  return address == UINT64_MAX ? NULL : (void *)(uintptr_t)address;
}

static void *seen_address(const struct plan *plan, object *value, const struct argument *argument) {
  dl_tensor found;
  if (plan->about.torch->look(value, &found)) {
    PyErr_Clear();
    return NULL;
  }
  if (found.device != DL_CPU || found.ndim != argument->dimensions || found.code != argument->code || found.bits != argument->bits || found.lanes != 1)
    return NULL;
  for (int64_t d = 0; d < argument->dimensions; d++)
    if (found.shape[d] != argument->shape[d] || (found.strides && found.shape[d] > 1 && found.strides[d] != argument->strides[d])) return NULL;
  return found.data ? (char *)found.data + found.byte_offset : NULL;
}

static void *address_of_tensor(const struct plan *plan, object *value, const struct argument *argument) {
  void *address = (plan->about.torch ? seen_address : asked_address)(plan, value, argument);
  return address && is_false(said(plan, value, IS_NEG)) ? address : NULL; /* DLPack does not report negated views */
}

static void *address_of(const struct plan *plan, object *value, const struct argument *argument, int *tensors) {
  enum kind kind = kind_of(plan, value);
  if (kind == OTHER) return NULL;
  *tensors |= kind == TENSOR;
  return kind == ARRAY ? address_of_array(value, argument) : address_of_tensor(plan, value, argument);
}

static void *scratch_of(struct plan *plan, int64_t k) {
  if (plan->arguments[k].bytes > plan->about.most_copied) return NULL;
  if (!plan->scratch[k]) plan->scratch[k] = aligned_alloc(ALIGNMENT, ((size_t)plan->arguments[k].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return plan->scratch[k];
}

static int is_aligned(const void *address) { return (uintptr_t)address % ALIGNMENT == 0; }

/* Finds the addresses of the inputs, and those where the kernel reads them and bound constants. Returns 0 if an input is not as required. */
static int look_at_inputs(struct plan *plan, object *inputs, void **found, void **addresses, int *tensors) {
  int64_t given = 0;
  if (PyTuple_Size(inputs) != plan->inputs) {
    PyErr_Clear();
    return 0;
  }
  for (int64_t k = 0; k < plan->about.arguments; k++) {
    const struct argument *argument = &plan->arguments[k];
    addresses[k] = argument->address;
    if (argument->role != INPUT) continue;
    found[k] = address_of(plan, PyTuple_GetItem(inputs, given++), argument, tensors);
    addresses[k] = found[k] && !is_aligned(found[k]) ? scratch_of(plan, k) : found[k];
    if (!addresses[k]) return 0;
  }
  return 1;
}

/* Outputs ------------------------------------------------------------------------------------------------------------------------------------------ */

static int overlaps(const struct plan *plan, int64_t which, const char *address, void *const *addresses) {
  for (int64_t k = 0; k < plan->about.arguments; k++) {
    const char *other = addresses[k];
    if (k == which || !other) continue;
    if (address < other + plan->arguments[k].bytes && other < address + plan->arguments[which].bytes) return 1;
  }
  return 0;
}

/* Finds the addresses where the kernel writes outputs, and in `wanted` those of `out`, where they must end up. */
static int look_at_outputs(struct plan *plan, object *out, void **addresses, void **wanted) {
  int several = type_of(out) == plan->tuple_type, ignored = 0;
  int64_t number = 0;
  if ((several ? PyTuple_Size(out) : 1) != plan->outputs) return 0;
  for (int64_t k = 0; k < plan->about.arguments; k++) {
    if (plan->arguments[k].role != OUTPUT) continue;
    wanted[k] = address_of(plan, several ? PyTuple_GetItem(out, number++) : out, &plan->arguments[k], &ignored);
    if (!wanted[k]) return 0;
    addresses[k] = is_aligned(wanted[k]) && !overlaps(plan, k, wanted[k], addresses) ? wanted[k] : scratch_of(plan, k);
    if (!addresses[k]) return 0;
  }
  return 1;
}

static void end_of_capsule(object *capsule) { give_back(PyCapsule_GetPointer(capsule, NULL)); }

static void end_of_tensor(dl_managed *managed) { give_back(managed->context); }

static object *as_array(struct plan *plan, struct block *block, struct argument *argument) {
  object *(*new)(object *, object *, int, const int64_t *, const int64_t *, void *, int, object *) =
      (object * (*)(object *, object *, int, const int64_t *, const int64_t *, void *, int, object *)) plan->about.numpy[94]; /* PyArray_NewFromDescr */
  int (*set_base)(object *, object *) = (int (*)(object *, object *))plan->about.numpy[282];                                 /* PyArray_SetBaseObject */
  object *capsule = PyCapsule_New(block, NULL, end_of_capsule);
  if (!capsule) {
    give_back(block);
    return NULL;
  }
  Py_IncRef(argument->dtype); /* the array takes this reference */
  object *array = new(plan->about.array_type, argument->dtype, (int)argument->dimensions, argument->shape, NULL, data_of(block), 0x0501, NULL);
  if (!array) {
    Py_DecRef(capsule);
    return NULL;
  }
  if (set_base(array, capsule)) { /* takes the capsule, even if it fails */
    Py_DecRef(array);
    return NULL;
  }
  return array;
}

/* Makes a tensor from an array, which owns the block. */
static object *from_array(struct plan *plan, struct block *block, struct argument *argument) {
  object *array = as_array(plan, block, argument);
  object *tensor = array ? PyObject_CallFunctionObjArgs(plan->about.from_array, array, NULL) : NULL;
  if (array) Py_DecRef(array);
  return tensor;
}

static object *as_tensor(struct plan *plan, struct block *block, struct argument *argument) {
  if (!plan->about.torch) return from_array(plan, block, argument);
  dl_managed *managed = &block->managed;
  *managed = (dl_managed){.major = 1, .minor = 0, .context = block, .deleter = end_of_tensor};
  managed->tensor = (dl_tensor){data_of(block), DL_CPU, 0, (int32_t)argument->dimensions, (uint8_t)argument->code, (uint8_t)argument->bits, 1,
                                block->owner->shape, block->owner->strides, 0};
  void *tensor = NULL;
  if (plan->about.torch->to_object(managed, &tensor)) {
    give_back(block);
    return NULL;
  }
  return tensor;
}

/* Calls -------------------------------------------------------------------------------------------------------------------------------------------- */

/* Makes the copies, with no Python code between them and the kernel: a finaliser that calls the same kernel would overwrite them. */
static void run(struct plan *plan, void *const *found, void *const *addresses) {
  for (int64_t k = 0; k < plan->about.arguments; k++)
    if (plan->arguments[k].role == INPUT && found[k] != addresses[k]) memcpy(addresses[k], found[k], (size_t)plan->arguments[k].bytes);
  void *thread = PyEval_SaveThread();
  plan->about.kernel(addresses, plan->about.workspace, plan->about.parallel_for, plan->about.pool);
  PyEval_RestoreThread(thread);
}

static object *none(void) {
  Py_IncRef(&_Py_NoneStruct);
  return &_Py_NoneStruct;
}

static object *into(struct plan *plan, object *out, void *const *found, void **addresses) {
  void *wanted[MOST_ARGUMENTS];
  if (!look_at_outputs(plan, out, addresses, wanted)) return none();
  run(plan, found, addresses);
  for (int64_t k = 0; k < plan->about.arguments; k++)
    if (plan->arguments[k].role == OUTPUT && wanted[k] != addresses[k]) memcpy(wanted[k], addresses[k], (size_t)plan->arguments[k].bytes);
  Py_IncRef(out);
  return out;
}

/* Wraps the blocks as results; each block belongs to its result, or is given back. Returns NULL with an error set if one cannot be made. */
static object *around(struct plan *plan, struct block **blocks, int tensors) {
  object *results = plan->outputs > 1 ? PyTuple_New(plan->outputs) : NULL, *result = NULL;
  int failed = plan->outputs > 1 && !results;
  for (int64_t k = 0, number = 0; k < plan->about.arguments; k++) {
    if (!blocks[k]) continue;
    if (failed) {
      give_back(blocks[k]);
      continue;
    }
    result = (tensors ? as_tensor : as_array)(plan, blocks[k], &plan->arguments[k]);
    failed = !result || (results && PyTuple_SetItem(results, number++, result));
  }
  if (failed && results) Py_DecRef(results);
  return failed ? NULL : results ? results : result;
}

static object *fresh(struct plan *plan, void *const *found, void **addresses, int tensors) {
  struct block *blocks[MOST_ARGUMENTS];
  int missing = 0;
  for (int64_t k = 0; k < plan->about.arguments; k++) {
    int made = plan->arguments[k].role == OUTPUT;
    blocks[k] = made ? borrow(plan->blocks[k], &plan->arguments[k]) : NULL;
    missing |= made && !blocks[k];
    if (blocks[k]) addresses[k] = data_of(blocks[k]);
  }
  if (!missing) {
    run(plan, found, addresses);
    return around(plan, blocks, tensors);
  }
  for (int64_t k = 0; k < plan->about.arguments; k++)
    if (blocks[k]) give_back(blocks[k]);
  return none();
}

static object *quick_call(object *self, object *const *given, length number) {
  struct plan *plan = PyCapsule_GetPointer(self, NULL);
  void *found[MOST_ARGUMENTS], *addresses[MOST_ARGUMENTS];
  int tensors = 0;
  if (number != 2) return none();
  plan->tuple_type = type_of(given[0]); /* the inputs are a tuple */
  if (!look_at_inputs(plan, given[0], found, addresses, &tensors)) return none();
  return given[1] == &_Py_NoneStruct ? fresh(plan, found, addresses, tensors) : into(plan, given[1], found, addresses);
}

/* Life --------------------------------------------------------------------------------------------------------------------------------------------- */

static void end_of_plan(struct plan *plan) {
  for (int64_t k = 0; k < plan->about.arguments; k++) {
    if (plan->scratch) free(plan->scratch[k]);
    if (!plan->blocks || !plan->blocks[k]) continue;
    free(atomic_exchange(&plan->blocks[k]->kept, CLOSED));
    release(plan->blocks[k]);
  }
  for (int k = 0; k < NAMES; k++)
    if (plan->names[k]) Py_DecRef(plan->names[k]);
  Py_DecRef(plan->about.keep);
  free(plan->scratch);
  free(plan->blocks);
  free(plan->arguments);
  free(plan);
}

static void end_of_plan_capsule(object *capsule) { end_of_plan(PyCapsule_GetPointer(capsule, NULL)); }

/* Makes a plan from a description; NULL if there is no memory. */
static struct plan *planned(const struct description *about) {
  struct plan *plan = calloc(1, sizeof *plan);
  if (!plan) return NULL;
  size_t number = (size_t)about->arguments;
  plan->about = *about;
  Py_IncRef(about->keep);
  int whole = 1;
  for (int k = 0; k < NAMES; k++) whole &= (plan->names[k] = PyUnicode_InternFromString(spelled[k])) != NULL;
  plan->arguments = calloc(number, sizeof *plan->arguments);
  plan->blocks = calloc(number, sizeof *plan->blocks);
  plan->scratch = calloc(number, sizeof *plan->scratch);
  whole = whole && plan->arguments && plan->blocks && plan->scratch;
  for (size_t k = 0; whole && k < number; k++) {
    plan->arguments[k] = about->list[k];
    plan->inputs += plan->arguments[k].role == INPUT;
    plan->outputs += plan->arguments[k].role == OUTPUT;
    if (plan->arguments[k].role != OUTPUT) continue;
    whole = (plan->blocks[k] = blocks_of(&plan->arguments[k])) != NULL;
  }
  if (whole) return plan;
  end_of_plan(plan);
  return NULL;
}

static method quick = {"quick_call", quick_call, FASTCALL, "The results of a call, or None where another way has to be taken."};

/* The function to call; None if there is no memory for it. */
object *ansor_quick_call(const struct description *about) {
  struct plan *plan = about->arguments <= MOST_ARGUMENTS ? planned(about) : NULL;
  if (!plan) {
    PyErr_Clear();
    return none();
  }
  object *capsule = PyCapsule_New(plan, NULL, end_of_plan_capsule);
  if (!capsule) {
    end_of_plan(plan);
    return NULL;
  }
  object *function = PyCFunction_NewEx(&quick, capsule, NULL);
  Py_DecRef(capsule);
  return function;
}
