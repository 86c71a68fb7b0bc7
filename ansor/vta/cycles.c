/* Cycles of a program of VTA: fetch and three modules in order, and one bus to DRAM. Each step runs the part that can continue first; ties go to the lower
   number, with fetch first. What waits is found again at each step, so nothing has to be woken. */

typedef struct {
  int64_t bus_bytes, beat, burst, read_latency, write_latency, reads, writes, fetch_burst, state, token, gemm_fill, gemm, alu_fill, alu_imm, alu_tensor;
  int64_t instruction_queue, token_queue;
  int64_t bytes[MEMORIES];
  int64_t *queue[MODULES], *sent[MODULES], *taken[MODULES];  /* instructions of each module; when each came, and when it left the queue; [n] */
  int64_t *push[STREAMS], *pop[STREAMS];                     /* when the k-th token was posted and taken, [n] */
  int64_t *times;                                            /* start and end of each instruction, [n][2] */
  int64_t *flight[4];                                        /* when the last accesses are done, [reads or writes] */
} Model;

typedef struct { int64_t ok, cycles, busy[4], bus, gemm, alu, waits[4]; } Cycles;

enum { FETCH = 3, NEVER = INT64_MAX };
enum { START, MOVE, END };

typedef struct {
  int64_t time, begun, done, address, left, row, issued, last;
  int state, write;
} Part;

typedef struct {
  const Model *m; Cycles *r; const int64_t *program;
  int64_t n, bus_free, given, arrived, count[MODULES], at[MODULES], pushes[STREAMS], pops[STREAMS];
  Part part[4];
} Sim;

/* One burst: it ends at a multiple of its longest length. */
static void burst(Sim *s, int who) {
  const Model *m = s->m;
  Part *p = &s->part[who];
  int64_t most = p->write ? m->writes : m->reads, size = m->burst - p->address % m->burst;
  if (size > p->left) size = p->left;
  int64_t *slot = &m->flight[who][p->issued++ % most];
  int64_t beats = (p->address % m->bus_bytes + size + m->bus_bytes - 1) / m->bus_bytes;
  int64_t start = p->time > s->bus_free ? p->time : s->bus_free;
  s->bus_free = start + beats * m->beat, s->r->bus += beats * m->beat;
  *slot = s->bus_free + (p->write ? m->write_latency : m->read_latency);
  if (*slot > p->last) p->last = *slot;
  p->address += size, p->left -= size;
  int64_t oldest = p->issued >= most ? m->flight[who][p->issued % most] : 0;
  p->time = start + 1 > oldest ? start + 1 : oldest;
}

static int64_t when_fetch(const Sim *s) {
  const Part *p = &s->part[FETCH];
  if (s->given == s->n) return NEVER;
  if (p->state == MOVE || s->given == s->arrived) return p->time;
  int to = module_of(s->program + s->given * COLUMNS);
  int64_t k = s->count[to] - s->m->instruction_queue;
  if (k < 0) return p->time;
  if (k >= s->at[to] + (s->part[to].state != START)) return NEVER;
  return s->m->taken[to][k] > p->time ? s->m->taken[to][k] : p->time;
}

static void step_fetch(Sim *s, int64_t now) {
  Part *p = &s->part[FETCH];
  p->time = now;
  if (p->state != MOVE && s->given == s->arrived) {
    int64_t more = s->n - s->given < s->m->fetch_burst ? s->n - s->given : s->m->fetch_burst;
    p->address = s->given * 16, p->left = more * 16, p->last = now, p->state = MOVE, p->begun = now, p->write = 0, p->issued = 0;
    memset(s->m->flight[FETCH], 0, s->m->reads * 8);
    return;
  }
  if (p->state == MOVE && p->left) { burst(s, FETCH); return; }
  if (p->state == MOVE) {
    int64_t more = s->n - s->given < s->m->fetch_burst ? s->n - s->given : s->m->fetch_burst;
    s->arrived = s->given + more, p->time = p->last > now ? p->last : now, p->state = START;
    s->r->busy[FETCH] += p->time - p->begun;
    return;
  }
  int to = module_of(s->program + s->given * COLUMNS);
  int64_t k = s->count[to]++;
  s->m->queue[to][k] = s->given++, s->m->sent[to][k] = now + 1, p->time = now + 1;
  s->r->busy[FETCH]++;
}

static int64_t when_start(const Sim *s, int m) {
  if (s->at[m] == s->count[m]) return NEVER;
  int64_t k = s->at[m], time = s->part[m].time;
  Row x = s->program + s->m->queue[m][k] * COLUMNS;
  if (s->m->sent[m][k] > time) time = s->m->sent[m][k];
  for (int column = POP_PREV; column <= POP_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream < 0) continue;
    if (s->pops[stream] == s->pushes[stream]) return NEVER;
    int64_t posted = s->m->push[stream][s->pops[stream]] + s->m->token;
    if (posted > time) time = posted;
  }
  return time;
}

static int64_t when_end(const Sim *s, int m) {
  int64_t time = s->part[m].time;
  Row x = s->program + s->m->queue[m][s->at[m]] * COLUMNS;
  for (int column = PUSH_PREV; column <= PUSH_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream < 0) continue;
    int64_t k = s->pushes[stream] - s->m->token_queue;
    if (k < 0) continue;
    if (k >= s->pops[stream]) return NEVER;
    if (s->m->pop[stream][k] > time) time = s->m->pop[stream][k];
  }
  return time;
}

static int64_t when(const Sim *s, int who) {
  if (who == FETCH) return when_fetch(s);
  switch (s->part[who].state) {
    case START: return when_start(s, who);
    case MOVE: return s->part[who].time;
    default: return when_end(s, who);
  }
}

static void next_row(const Sim *s, Part *p, Row x) {
  int64_t size = s->m->bytes[x[MEMORY]];
  p->address = (x[DRAM] + p->row++ * x[STRIDE]) * size, p->left = x[WIDTH] * size;
}

static void start(Sim *s, int m, int64_t now) {
  const Model *model = s->m;
  Part *p = &s->part[m];
  int64_t number = model->queue[m][s->at[m]];
  Row x = s->program + number * COLUMNS;
  model->taken[m][s->at[m]] = now, model->times[2 * number] = now, p->begun = now;
  for (int column = POP_PREV; column <= POP_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream >= 0) model->pop[stream][s->pops[stream]++] = now;
  }
  p->time = now + model->state, p->last = p->time, p->state = END;
  int64_t uops = (x[UOP_END] - x[UOP_BGN]) * x[ITER_OUT] * x[ITER_IN], each = x[USE_IMM] ? model->alu_imm : model->alu_tensor;
  if (x[OPCODE] == GEMM && uops) p->time += model->gemm_fill + uops * model->gemm, s->r->gemm += uops * model->gemm;
  if (x[OPCODE] == ALU && uops) p->time += model->alu_fill + uops * each, s->r->alu += uops * each;
  if (x[OPCODE] > STORE || !elements(x)) return;
  p->state = MOVE, p->row = 0, p->issued = 0, p->write = x[OPCODE] == STORE;
  p->done = p->time + (elements(x) > x[ROWS] * x[WIDTH] ? elements(x) - x[ROWS] * x[WIDTH] : 0);
  memset(model->flight[m], 0, (p->write ? model->writes : model->reads) * 8);
  next_row(s, p, x);
}

static void move(Sim *s, int m) {
  Part *p = &s->part[m];
  Row x = s->program + s->m->queue[m][s->at[m]] * COLUMNS;
  if (!p->left && p->row < x[ROWS]) next_row(s, p, x);
  burst(s, m);
  if (p->left || p->row < x[ROWS]) return;
  p->state = END;
  p->time = p->last > p->done ? p->last : p->done;
}

static void end(Sim *s, int m, int64_t now) {
  Part *p = &s->part[m];
  int64_t number = s->m->queue[m][s->at[m]++];
  Row x = s->program + number * COLUMNS;
  for (int column = PUSH_PREV; column <= PUSH_NEXT; column++) {
    int stream = stream_of(m, x, column);
    if (stream >= 0) s->m->push[stream][s->pushes[stream]++] = now;
  }
  p->state = START, p->time = now + 1, s->m->times[2 * number + 1] = now + 1;
  s->r->busy[m] += now + 1 - p->begun;
  if (now + 1 > s->r->cycles) s->r->cycles = now + 1;
}

static void stopped(const Sim *s) {
  int64_t left = s->n - s->given;
  for (int m = 0; m < MODULES; m++) {
    s->r->waits[m] = s->at[m] < s->count[m] ? s->m->queue[m][s->at[m]] : -1;
    left += s->count[m] - s->at[m];
  }
  s->r->waits[FETCH] = s->given < s->n ? s->given : -1;
  s->r->ok = !left;
}

void ansor_vta_cycles(const Model *model, const int64_t *program, int64_t n, Cycles *result) {
  Sim s = {.m = model, .r = result, .program = program, .n = n};
  for (;;) {
    int who = FETCH;
    int64_t now = when(&s, FETCH);
    for (int m = 0; m < MODULES; m++) {
      int64_t time = when(&s, m);
      if (time < now) now = time, who = m;
    }
    if (now == NEVER) { stopped(&s); return; }
    if (who == FETCH) { step_fetch(&s, now); continue; }
    switch (s.part[who].state) {
      case START: start(&s, who, now); break;
      case MOVE: move(&s, who); break;
      default: end(&s, who, now);
    }
  }
}
