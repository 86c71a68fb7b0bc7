/* What both simulators read: a row of numbers for each instruction, in the order of `NAMES` in columns.py, and what their modules have in common. */
#include <stdint.h>
#include <string.h>

enum { OPCODE, POP_PREV, POP_NEXT, PUSH_PREV, PUSH_NEXT, MEMORY, SRAM, DRAM, ROWS, WIDTH, STRIDE, TOP, BOTTOM, LEFT, RIGHT,
       RESET, UOP_BGN, UOP_END, ITER_OUT, ITER_IN, DST_OUT, DST_IN, SRC_OUT, SRC_IN, WGT_OUT, WGT_IN, OPERATION, USE_IMM, IMMEDIATE, COLUMNS };
enum { LOAD = 0, STORE = 1, GEMM = 2, FINISH = 3, ALU = 4 };
enum { UOP = 0, WGT = 1, INP = 2, ACC = 3, OUT = 4, ACC8 = 5, MEMORIES = 6 };
enum { M_LOAD = 0, M_COMPUTE = 1, M_STORE = 2, MODULES = 3 };
/* Streams of tokens: stream s goes from FROM[s] to TO[s]. */
enum { LOAD_COMPUTE = 0, COMPUTE_LOAD = 1, COMPUTE_STORE = 2, STORE_COMPUTE = 3, STREAMS = 4 };

typedef const int64_t *Row;

static int module_of(Row x) {
  if (x[OPCODE] == STORE) return M_STORE;
  return x[OPCODE] == LOAD && (x[MEMORY] == INP || x[MEMORY] == WGT) ? M_LOAD : M_COMPUTE;
}

/* The stream that a flag of a module means: -1 for none. Columns POP_PREV to PUSH_NEXT. */
static const int STREAM_OF[MODULES][4] = {
  {-1, COMPUTE_LOAD, -1, LOAD_COMPUTE},
  {LOAD_COMPUTE, STORE_COMPUTE, COMPUTE_LOAD, COMPUTE_STORE},
  {COMPUTE_STORE, -1, STORE_COMPUTE, -1},
};

static int stream_of(int module, Row x, int column) { return x[column] ? STREAM_OF[module][column - POP_PREV] : -1; }

static int64_t elements(Row x) {
  return x[ROWS] && x[WIDTH] ? (x[TOP] + x[ROWS] + x[BOTTOM]) * (x[LEFT] + x[WIDTH] + x[RIGHT]) : 0;
}
