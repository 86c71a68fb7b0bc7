/* What a program of VTA computes, in program order or with the modules in a random order, and whether its tokens order everything that has to be ordered.
   A token stream has one writer and one reader, so its k-th pop always meets its k-th push: which instructions are ordered does not depend on who runs
   first, and vector clocks over them find every race in any order of running. */

typedef struct {
  int64_t depth[MEMORIES], bytes[MEMORIES];        /* elements, and bytes of one in DRAM */
  int64_t batch, block, dst_bits, src_bits, wgt_bits;
  int64_t dram_bytes, random, seed, instruction_queue, token_queue;
  uint8_t *dram;
  int32_t *acc; int8_t *inp, *wgt, *out; uint32_t *uop;
  int64_t *shadow[MEMORIES + 1];                   /* for each element: the last writer, and the last reader in each module; DRAM in units of 4 bytes */
  int64_t *queue[MODULES];                         /* instructions of each module, [n] */
  int64_t *pushed[STREAMS];                        /* for each token the clocks of its pusher, [n][MODULES] */
} Core;

typedef struct {
  int64_t fault, at, other, memory, place, limit;  /* what went wrong, by `Fault`; numbers of instructions */
  int64_t waits[4];                                /* of a deadlock: instruction that each module (and fetch, last) waits with, or -1 */
  int64_t stream[4];                               /* the stream that it waits for; 4: no instruction; 5: a queue that is full */
  int64_t loaded[MEMORIES], stored, gemm, reset, alu, close, left[STREAMS];
} Result;

enum { FINE, RACE, DEADLOCK, SRAM_BOUNDS, DRAM_BOUNDS, LEFT_OVER };
enum { DRAM_SHADOW = MEMORIES, SHADOW = 4 };       /* a shadow: the writer, and a reader for each module; number of instruction + 1 */

typedef struct {
  const Core *c; Result *r; const int64_t *program;
  int64_t now; int module; int64_t clock[MODULES][MODULES];   /* clock[m][k]: the last instruction of module k (its number + 1) that is before what m does now */
  int64_t last[2];
} Run;

static int fail(Run *s, int fault, int64_t other, int memory, int64_t place, int64_t limit) {
  Result *r = s->r;
  r->fault = fault, r->at = s->now, r->other = other, r->memory = memory, r->place = place, r->limit = limit;
  return 0;
}

/* Whether the instruction of that number + 1, which module m ran, is before the one that runs now. */
static int before(const Run *s, int64_t stamp, const int64_t *program) {
  if (!stamp) return 1;
  int m = module_of(program + (stamp - 1) * COLUMNS);
  return m == s->module || stamp <= s->clock[s->module][m];
}

static int touch(Run *s, int memory, int64_t place, int write) {
  if (!s->c->random) return 1;
  int64_t *w = s->c->shadow[memory] + place * SHADOW;
  if (!before(s, w[0], s->program)) return fail(s, RACE, w[0] - 1, memory, place, 0);
  if (!write) { w[1 + s->module] = s->now + 1; return 1; }
  for (int m = 0; m < MODULES; m++)
    if (!before(s, w[1 + m], s->program)) return fail(s, RACE, w[1 + m] - 1, memory, place, 0);
  w[0] = s->now + 1;
  return 1;
}

static int in_sram(Run *s, int memory, int64_t place) {
  return place < s->c->depth[memory] ? 1 : fail(s, SRAM_BOUNDS, 0, memory, place, s->c->depth[memory]);
}

static int in_dram(Run *s, int memory, int64_t first, int64_t size, int write) {
  if (first + size > s->c->dram_bytes) return fail(s, DRAM_BOUNDS, 0, memory, first + size, s->c->dram_bytes);
  if (s->c->random)
    for (int64_t k = first / 4; k < (first + size + 3) / 4; k++) if (!touch(s, DRAM_SHADOW, k, write)) return 0;
  return 1;
}

static void put(const Core *c, int memory, int64_t to, const uint8_t *from) {
  int64_t row = c->batch * c->block;
  if (memory == UOP) { if (from) memcpy(c->uop + to, from, 4); else c->uop[to] = 0; }
  if (memory == WGT) { if (from) memcpy(c->wgt + to * c->bytes[WGT], from, c->bytes[WGT]); else memset(c->wgt + to * c->bytes[WGT], 0, c->bytes[WGT]); }
  if (memory == INP) { if (from) memcpy(c->inp + to * row, from, row); else memset(c->inp + to * row, 0, row); }
  if (memory == ACC) { if (from) memcpy(c->acc + to * row, from, row * 4); else memset(c->acc + to * row, 0, row * 4); }
  if (memory == ACC8) for (int64_t k = 0; k < row; k++) c->acc[to * row + k] = from ? (int8_t)from[k] : 0;
}

static int run_load(Run *s, Row x) {
  const Core *c = s->c;
  int memory = (int)x[MEMORY], held = memory == ACC8 ? ACC : memory;
  if (!elements(x)) return 1;
  int64_t to = x[SRAM];
  for (int64_t y = -x[TOP]; y < x[ROWS] + x[BOTTOM]; y++) {
    int64_t first = (x[DRAM] + y * x[STRIDE]) * c->bytes[memory];
    int inside = y >= 0 && y < x[ROWS];
    if (inside && !in_dram(s, memory, first, x[WIDTH] * c->bytes[memory], 0)) return 0;
    for (int64_t k = -x[LEFT]; k < x[WIDTH] + x[RIGHT]; k++, to++) {
      if (!in_sram(s, held, to) || !touch(s, held, to, 1)) return 0;
      put(c, memory, to, inside && k >= 0 && k < x[WIDTH] ? c->dram + first + k * c->bytes[memory] : 0);
    }
  }
  s->r->loaded[memory] += x[ROWS] * x[WIDTH] * c->bytes[memory];
  return 1;
}

static int run_store(Run *s, Row x) {
  const Core *c = s->c;
  int64_t size = c->bytes[OUT], from = x[SRAM];
  for (int64_t y = 0; y < x[ROWS]; y++) {
    int64_t first = (x[DRAM] + y * x[STRIDE]) * size;
    if (!in_dram(s, OUT, first, x[WIDTH] * size, 1)) return 0;
    for (int64_t k = 0; k < x[WIDTH]; k++, from++) {
      if (!in_sram(s, OUT, from) || !touch(s, OUT, from, 0)) return 0;
      memcpy(c->dram + first + k * size, c->out + from * size, size);
    }
  }
  s->r->stored += x[ROWS] * x[WIDTH] * size;
  return 1;
}

static void multiply(const Core *c, int64_t dst, int64_t src, int64_t wgt) {
  const int8_t *w = c->wgt + wgt * c->block * c->block;
  for (int64_t b = 0; b < c->batch; b++) {
    const int8_t *row = c->inp + (src * c->batch + b) * c->block;
    int32_t *sums = c->acc + (dst * c->batch + b) * c->block;
    for (int64_t o = 0; o < c->block; o++) {
      uint32_t sum = (uint32_t)sums[o];
      for (int64_t k = 0; k < c->block; k++) sum += (uint32_t)((int32_t)row[k] * w[o * c->block + k]);
      sums[o] = (int32_t)sum;
    }
  }
}

static int32_t shifted(int32_t x, int64_t by) {
  if (by >= 0) return x >> (by > 31 ? 31 : by);
  return by <= -32 ? 0 : (int32_t)((uint32_t)x << -by);
}

static int32_t computed(int64_t operation, int32_t x, int32_t y) {
  switch (operation) {
    case 0: return x < y ? x : y;
    case 1: return x > y ? x : y;
    case 2: return (int32_t)((uint32_t)x + (uint32_t)y);
    case 3: return shifted(x, y);
    default: return (int32_t)((uint32_t)x * (uint32_t)y);
  }
}

static int run_uop(Run *s, Row x, int64_t dst, int64_t src, int64_t wgt) {
  const Core *c = s->c;
  int64_t row = c->batch * c->block;
  int gemm = x[OPCODE] == GEMM, reads = gemm ? !x[RESET] : !x[USE_IMM];
  if (!in_sram(s, ACC, dst) || !touch(s, ACC, dst, 1) || !touch(s, OUT, dst, 1)) return 0;
  if (reads && (!in_sram(s, gemm ? INP : ACC, src) || !touch(s, gemm ? INP : ACC, src, 0))) return 0;
  if (gemm && reads && (!in_sram(s, WGT, wgt) || !touch(s, WGT, wgt, 0))) return 0;
  int32_t *sums = c->acc + dst * row;
  if (gemm && reads) multiply(c, dst, src, wgt);
  else if (gemm) memset(sums, 0, row * 4);
  else for (int64_t k = 0; k < row; k++) sums[k] = computed(x[OPERATION], sums[k], x[USE_IMM] ? (int32_t)x[IMMEDIATE] : c->acc[src * row + k]);
  for (int64_t k = 0; k < row; k++) c->out[dst * row + k] = (int8_t)(uint32_t)sums[k];
  s->r->close += dst == s->last[0] || dst == s->last[1];
  s->last[1] = s->last[0], s->last[0] = dst;
  return 1;
}

static int run_loops(Run *s, Row x) {
  const Core *c = s->c;
  uint32_t dst = (1u << c->dst_bits) - 1, src = (1u << c->src_bits) - 1, wgt = (1u << c->wgt_bits) - 1;
  int64_t count = x[ITER_OUT] * x[ITER_IN] * (x[UOP_END] - x[UOP_BGN]);
  s->last[0] = s->last[1] = -1;
  for (int64_t o = 0; o < x[ITER_OUT]; o++)
    for (int64_t i = 0; i < x[ITER_IN]; i++)
      for (int64_t u = x[UOP_BGN]; u < x[UOP_END]; u++) {
        if (!in_sram(s, UOP, u) || !touch(s, UOP, u, 0)) return 0;
        uint32_t word = c->uop[u];
        int64_t d = (word & dst) + o * x[DST_OUT] + i * x[DST_IN];
        int64_t a = (word >> c->dst_bits & src) + o * x[SRC_OUT] + i * x[SRC_IN];
        int64_t b = (word >> (c->dst_bits + c->src_bits) & wgt) + o * x[WGT_OUT] + i * x[WGT_IN];
        if (!run_uop(s, x, d, a, b)) return 0;
      }
  *(x[OPCODE] == ALU ? &s->r->alu : x[RESET] ? &s->r->reset : &s->r->gemm) += count;
  return 1;
}

static int execute(Run *s, int64_t number) {
  Row x = s->program + number * COLUMNS;
  s->now = number, s->module = module_of(x);
  s->clock[s->module][s->module] = number + 1;
  switch (x[OPCODE]) {
    case LOAD: return run_load(s, x);
    case STORE: return run_store(s, x);
    case FINISH: return 1;
    default: return run_loops(s, x);
  }
}

typedef struct { int64_t given, taken[MODULES], queued[MODULES], pushes[STREAMS], pops[STREAMS]; } Queues;

/* -1 where the module can run, else what it waits for: a stream, 4 for an instruction, 5 for space in a queue. */
static int waits_for(const Run *s, const Queues *q, int m) {
  if (q->taken[m] == q->queued[m]) return 4;
  Row x = s->program + s->c->queue[m][q->taken[m]] * COLUMNS;
  for (int column = POP_PREV; column <= POP_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream >= 0 && q->pops[stream] == q->pushes[stream]) return stream;
  }
  for (int column = PUSH_PREV; column <= PUSH_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream >= 0 && q->pushes[stream] - q->pops[stream] >= s->c->token_queue) return 5;
  }
  return -1;
}

static int step(Run *s, Queues *q, int m) {
  int64_t number = s->c->queue[m][q->taken[m]++];
  Row x = s->program + number * COLUMNS;
  for (int column = POP_PREV; column <= POP_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream < 0) continue;
    const int64_t *from = s->c->pushed[stream] + q->pops[stream]++ * MODULES;
    for (int k = 0; k < MODULES; k++) if (from[k] > s->clock[m][k]) s->clock[m][k] = from[k];
  }
  if (!execute(s, number)) return 0;
  for (int column = PUSH_PREV; column <= PUSH_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream >= 0) memcpy(s->c->pushed[stream] + q->pushes[stream]++ * MODULES, s->clock[m], sizeof s->clock[m]);
  }
  return 1;
}

static uint64_t drawn(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u, z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

static int stopped(Run *s, const Queues *q, int64_t n) {
  Result *r = s->r;
  int64_t left = n - q->given;
  for (int m = 0; m < MODULES; m++) left += q->queued[m] - q->taken[m];
  for (int k = 0; k < STREAMS; k++) r->left[k] = q->pushes[k] - q->pops[k];
  if (!left) {
    for (int k = 0; k < STREAMS; k++) if (r->left[k]) return fail(s, LEFT_OVER, 0, k, 0, 0);
    return 1;
  }
  for (int m = 0; m < MODULES; m++) {
    r->stream[m] = waits_for(s, q, m);
    r->waits[m] = r->stream[m] == 4 ? -1 : s->c->queue[m][q->taken[m]];
  }
  r->waits[3] = q->given < n ? q->given : -1, r->stream[3] = 5;
  return fail(s, DEADLOCK, 0, 0, 0, 0);
}

static int in_random_order(Run *s, int64_t n) {
  Queues q = {0};
  uint64_t state = (uint64_t)s->c->seed;
  for (;;) {
    int ready[4], count = 0;
    for (int m = 0; m < MODULES; m++) if (waits_for(s, &q, m) < 0) ready[count++] = m;
    int to = q.given < n ? module_of(s->program + q.given * COLUMNS) : -1;
    if (to >= 0 && q.queued[to] - q.taken[to] < s->c->instruction_queue) ready[count++] = 3;
    if (!count) return stopped(s, &q, n);
    int chosen = ready[drawn(&state) % (uint64_t)count];
    if (chosen == 3) s->c->queue[to][q.queued[to]++] = q.given++;
    else if (!step(s, &q, chosen)) return 0;
  }
}

int ansor_vta_run(const Core *core, const int64_t *program, int64_t n, Result *result) {
  Run s = {core, result, program, 0, 0, {{0}}, {-1, -1}};
  if (core->random) return in_random_order(&s, n);
  for (int64_t k = 0; k < n; k++) if (!execute(&s, k)) return 0;
  return 1;
}
