/* A small thread pool for generated kernels, on POSIX threads and C11 atomics.
 *
 * ansor_parallel_for runs body(ctx, begin, end) over [0, n); the caller works too.
 *
 * Shares     Every thread owns an equal, contiguous share of [0, n) and takes pieces from its front, a quarter of what is left at a time. Who has
 *            finished his own takes pieces from the back of the others'. So loops over the same data meet the same caches, and a thread that
 *            comes late or is held up holds up nobody for longer than one piece. (Markatos and LeBlanc 1994, "Using Processor Affinity in
 *            Loop Scheduling on Shared-Memory Multiprocessors".)
 * Gate       A loop is open to workers until the caller finds nothing left to take. The caller waits for those inside, never for those who sleep.
 * Waiting    Who waits looks for a few microseconds, offers its processor to others now and then, and then sleeps: kernels in a row find the
 *            workers awake, and an idle pool costs nothing.
 * OpenMP     Where the process has an OpenMP runtime with as many threads, its threads do what workers do: they look for their next loop for
 *            milliseconds, and two sets of threads that look for work take each other's processors. But such a loop ends when all of them have come:
 *            where another program has their processor, that takes milliseconds, too. After such a loop the workers are used for a while.
 * Places     A thread that wakes up is often put on the processor of the thread that woke it, and systems may leave both there for milliseconds, with
 *            other processors idle. So a worker that finds itself where a thread before it runs moves elsewhere, within what its user allows.
 * Callers    One loop has the workers at a time. A loop that finds them taken (another thread's loop, or the one it is part of) and a loop in a
 *            forked process, where the workers are missing, runs in its caller alone.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#ifndef SPIN_NANOSECONDS
#define SPIN_NANOSECONDS 50000 /* about what waking a thread costs: waiting so long is at worst twice as dear as the best choice */
#endif
#ifndef LATE_NANOSECONDS
#define LATE_NANOSECONDS 50000 /* a loop on OpenMP's threads that ends so long after its last piece waited for a thread without a processor */
#endif
#define LATE_FACTOR 20         /* workers are used for so many times as long: what such loops cost is a twentieth of the time at most */
#define LONGEST_PAUSE 1000000000
#define RESTED_NANOSECONDS 500000 /* after such a rest, OpenMP's threads may have slept: by default they look for their next loop about as long */
#define STACK ((size_t)8 << 20) /* of a worker: tiles live there */
#define LEAST_STACK (STACK / 8) /* of a thread of OpenMP, whose user may have set it: tiles take half of that at most, unless told otherwise */
#define LINE 64 /* bytes of a cache line */

typedef void (*loop_body)(void *ctx, long begin, long end);

#define OPEN ((uint64_t)1 << 31)
#define INSIDE (OPEN - 1)
#define ROUND(gate) ((gate) >> 32)

struct share {
  _Alignas(LINE) _Atomic uint64_t span; /* what is left of it: first << 32 | end, in units */
  int64_t ended;                        /* when its thread of OpenMP had run its last piece; 0: it had none */
  atomic_int place;                     /* the processor on which its thread was seen last; -1: unknown */
};

struct openmp { /* functions of a runtime of this process; NULL where there is none */
  void (*parallel)(void (*body)(void *), void *data, unsigned threads, unsigned flags); /* GOMP_parallel, which runtimes of other makers have, too */
  int (*thread_num)(void), (*max_threads)(void), (*in_parallel)(void);
};

struct pause {
  int64_t length, end; /* nanoseconds; OpenMP's threads are used after `end` */
};

struct pool {
  _Alignas(LINE) _Atomic uint64_t gate; /* round << 32 | OPEN | number of workers inside */
  atomic_int stopping;
  _Alignas(LINE) atomic_int taken;   /* some caller has the workers */
  atomic_int sleepers, caller_sleeps; /* changed with the lock held */
  loop_body body;
  void *ctx;
  long n, unit; /* iterations, and iterations in a unit: 1 unless n is beyond 32 bits */
  int threads;
  int forks; /* of this process's ancestors, when the pool was made */
  struct share *shares;
  pthread_t *workers;
  pthread_mutex_t lock;
  pthread_cond_t work_ready, work_done;
  struct openmp openmp;
  struct pause pause;
  int64_t ended; /* when the last loop on OpenMP's threads was over */
  int rested;    /* they may have slept since then */
  atomic_int cramped; /* a thread of OpenMP has too small a stack: they are not used again */
};

struct hired {
  struct pool *pool;
  int number;
};

static atomic_int forks;

static void note_fork(void) { atomic_fetch_add(&forks, 1); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }

/* Waiting ------------------------------------------------------------------------------------------------------------------------------------------ */

static inline void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb"); /* `yield` does nothing on most cores */
#elif defined(__arm__)
  __asm__ volatile("yield");
#endif
}

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct patience {
  int looks;
  int64_t end;
};

/* Between two looks at what is waited for; 0 when it is time to sleep. */
static int patient(struct patience *spent) {
  if (++spent->looks % 64) {
    pause_briefly();
    return 1;
  }
  int64_t now = nanoseconds();
  if (!spent->end) spent->end = now + SPIN_NANOSECONDS;
  if (now >= spent->end) return 0;
  sched_yield(); /* whoever else is ready to run here goes first */
  return 1;
}

/* Taking pieces ------------------------------------------------------------------------------------------------------------------------------------ */

/* A piece of a share, at its front or its back; 0 when nothing is left. */
static int take(struct share *share, int front, uint32_t *begin, uint32_t *end) {
  uint64_t span = atomic_load_explicit(&share->span, memory_order_relaxed);
  for (;;) {
    uint32_t first = (uint32_t)(span >> 32), last = (uint32_t)span;
    if (first >= last) return 0;
    uint32_t piece = (last - first + 3) / 4;
    *begin = front ? first : last - piece;
    *end = *begin + piece;
    uint64_t left = front ? (uint64_t)*end << 32 | last : (uint64_t)first << 32 | *begin;
    if (atomic_compare_exchange_weak_explicit(&share->span, &span, left, memory_order_relaxed, memory_order_relaxed)) return 1;
  }
}

/* What thread `number` does in an open loop; gives whether it did anything. */
static int work(struct pool *pool, int number) {
  loop_body body = pool->body;
  void *ctx = pool->ctx;
  long n = pool->n, unit = pool->unit;
  uint32_t begin, end;
  int busy = 0;
  for (int k = 0; k < pool->threads; k++) {
    struct share *share = &pool->shares[(number + k) % pool->threads];
    while (take(share, k == 0, &begin, &end)) {
      body(ctx, begin * unit, end * unit < n ? end * unit : n);
      busy = 1;
    }
  }
  return busy;
}

/* Places ------------------------------------------------------------------------------------------------------------------------------------------- */

static int note_place(struct share *share) {
#ifdef __linux__
  int here = sched_getcpu();
#else
  int here = -1;
#endif
  atomic_store_explicit(&share->place, here, memory_order_relaxed);
  return here;
}

/* Moves thread `number` elsewhere if it runs where one of the threads before it was seen. */
static void step_aside(struct pool *pool, int number) {
  int here = note_place(&pool->shares[number]), crowded = 0;
  for (int k = 0; k < number; k++) crowded |= here >= 0 && here == atomic_load_explicit(&pool->shares[k].place, memory_order_relaxed);
  if (!crowded) return;
#ifdef __linux__
  cpu_set_t allowed, free_ones;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
  free_ones = allowed;
  for (int k = 0; k < number; k++) {
    int place = atomic_load_explicit(&pool->shares[k].place, memory_order_relaxed);
    if (place >= 0) CPU_CLR(place, &free_ones);
  }
  if (!CPU_COUNT(&free_ones) || sched_setaffinity(0, sizeof free_ones, &free_ones)) return;
  sched_setaffinity(0, sizeof allowed, &allowed); /* it has moved, and may be moved again */
  note_place(&pool->shares[number]);
#endif
}

/* Workers ------------------------------------------------------------------------------------------------------------------------------------------ */

static int has_work(struct pool *pool, uint64_t seen) {
  uint64_t gate = atomic_load(&pool->gate);
  return ((gate & OPEN) && ROUND(gate) != seen) || atomic_load(&pool->stopping);
}

/* Returns when there is a loop that this worker has not seen, or the pool is to stop; gives whether it has slept. */
static int await_work(struct pool *pool, uint64_t seen) {
  for (int slept = 0;; slept = 1) {
    struct patience spent = {0, 0};
    do {
      if (has_work(pool, seen)) return slept;
    } while (patient(&spent));
    pthread_mutex_lock(&pool->lock);
    atomic_fetch_add(&pool->sleepers, 1); /* before the last look: a caller opens the gate first and looks for sleepers then */
    uint64_t round = ROUND(atomic_load(&pool->gate));
    /* A loop that is over already may be the first of many: wake up for those. */
    while (!has_work(pool, seen) && ROUND(atomic_load(&pool->gate)) == round) pthread_cond_wait(&pool->work_ready, &pool->lock);
    atomic_fetch_sub(&pool->sleepers, 1);
    pthread_mutex_unlock(&pool->lock);
  }
}

static void *worker(void *argument) {
  struct hired hired = *(struct hired *)argument;
  struct pool *pool = hired.pool;
  free(argument);
  uint64_t seen = 0;
  for (;;) {
    int slept = await_work(pool, seen);
    if (atomic_load(&pool->stopping)) return NULL;
    if (slept) step_aside(pool, hired.number); /* before it is inside: the caller would wait for it */
    uint64_t gate = atomic_load(&pool->gate);
    int inside = 0;
    while (!inside && (gate & OPEN) && ROUND(gate) != seen) inside = atomic_compare_exchange_weak(&pool->gate, &gate, gate + 1);
    if (!inside) continue;
    seen = ROUND(gate);
    work(pool, hired.number);
    gate = atomic_fetch_sub(&pool->gate, 1) - 1;
    if (!(gate & (OPEN | INSIDE)) && atomic_load(&pool->caller_sleeps)) {
      pthread_mutex_lock(&pool->lock);
      pthread_cond_signal(&pool->work_done);
      pthread_mutex_unlock(&pool->lock);
    }
  }
}

/* Callers ------------------------------------------------------------------------------------------------------------------------------------------ */

static void open_gate(struct pool *pool) {
  atomic_store(&pool->gate, (ROUND(atomic_load(&pool->gate)) + 1) << 32 | OPEN);
  if (!atomic_load(&pool->sleepers)) return;
  note_place(&pool->shares[0]);
  pthread_mutex_lock(&pool->lock);
  pthread_cond_broadcast(&pool->work_ready);
  pthread_mutex_unlock(&pool->lock);
  sched_yield(); /* a worker that was put here has to run to find out and move */
}

static void close_gate(struct pool *pool) {
  atomic_fetch_and(&pool->gate, ~OPEN);
  struct patience spent = {0, 0};
  do {
    if (!(atomic_load(&pool->gate) & INSIDE)) return;
  } while (patient(&spent));
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->caller_sleeps, 1);
  while (atomic_load(&pool->gate) & INSIDE) pthread_cond_wait(&pool->work_done, &pool->lock);
  atomic_store(&pool->caller_sleeps, 0);
  pthread_mutex_unlock(&pool->lock);
}

/* OpenMP ------------------------------------------------------------------------------------------------------------------------------------------- */

static int has_stack(void) {
#ifdef __linux__
  static _Thread_local size_t size;
  pthread_attr_t attributes;
  if (!size && !pthread_getattr_np(pthread_self(), &attributes)) {
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
  }
  return size >= LEAST_STACK;
#else
  return 1;
#endif
}

/* What a thread of OpenMP does in a loop. A runtime that gives fewer threads leaves their shares to the others; so does a thread without a stack for it. */
static void openmp_worker(void *handle) {
  struct pool *pool = handle;
  int number = pool->openmp.thread_num();
  if (number && !has_stack()) {
    atomic_store(&pool->cramped, 1);
    return;
  }
  if (number && pool->rested) step_aside(pool, number);
  pool->shares[number].ended = work(pool, number) ? nanoseconds() : 0;
}

/* Whether OpenMP has the threads for a loop: asked with another number it would end some of its threads, and start them again for others. */
static int openmp_has(const struct pool *pool) {
  if (!pool->openmp.parallel || atomic_load(&pool->cramped) || pool->openmp.max_threads() != pool->threads || pool->openmp.in_parallel()) return 0;
  return !pool->pause.length || nanoseconds() >= pool->pause.end;
}

static void run_on_openmp(struct pool *pool) {
  pool->rested = nanoseconds() - pool->ended > RESTED_NANOSECONDS;
  if (pool->rested) note_place(&pool->shares[0]);
  for (int t = 0; t < pool->threads; t++) pool->shares[t].ended = 0;
  pool->openmp.parallel(openmp_worker, pool, (unsigned)pool->threads, 0);
  int64_t now = pool->ended = nanoseconds(), last = 0;
  for (int t = 0; t < pool->threads; t++) last = pool->shares[t].ended > last ? pool->shares[t].ended : last;
  int64_t late = now - last, length = late * LATE_FACTOR > pool->pause.length * 2 ? late * LATE_FACTOR : pool->pause.length * 2;
  if (late < LATE_NANOSECONDS) length = 0;
  if (length > LONGEST_PAUSE) length = LONGEST_PAUSE;
  pool->pause = (struct pause){length, now + length};
}

void ansor_parallel_for(void *handle, loop_body body, void *ctx, long n) {
  struct pool *pool = handle;
  if (n <= 0) return;
  if (n == 1 || !pool || pool->threads == 1 || pool->forks != atomic_load(&forks) || atomic_exchange(&pool->taken, 1)) {
    body(ctx, 0, n);
    return;
  }
  pool->body = body;
  pool->ctx = ctx;
  pool->n = n;
  pool->unit = (n >> 31) + 1;
  uint64_t units = ((uint64_t)n + (uint64_t)pool->unit - 1) / (uint64_t)pool->unit;
  for (int t = 0; t < pool->threads; t++) {
    uint64_t begin = units * (uint64_t)t / (uint64_t)pool->threads, end = units * (uint64_t)(t + 1) / (uint64_t)pool->threads;
    atomic_store_explicit(&pool->shares[t].span, begin << 32 | end, memory_order_relaxed);
  }
  if (openmp_has(pool)) {
    run_on_openmp(pool);
  } else {
    open_gate(pool);
    work(pool, 0);
    close_gate(pool);
  }
  atomic_store(&pool->taken, 0);
}

/* Life --------------------------------------------------------------------------------------------------------------------------------------------- */

/* Lets the threads of an OpenMP runtime do the work from the next loop on. */
void ansor_pool_use_openmp(void *handle, const struct openmp *openmp) {
  struct pool *pool = handle;
  while (atomic_exchange(&pool->taken, 1)) sched_yield(); /* some loop runs */
  pool->openmp = *openmp;
  atomic_store(&pool->taken, 0);
}

void ansor_pool_destroy(void *handle) {
  struct pool *pool = handle;
  if (!pool || pool->forks != atomic_load(&forks)) return; /* in a forked process there is nobody to wait for, and the lock may be held for ever */
  pthread_mutex_lock(&pool->lock);
  atomic_store(&pool->stopping, 1);
  pthread_cond_broadcast(&pool->work_ready);
  pthread_mutex_unlock(&pool->lock);
  for (int t = 1; t < pool->threads; t++) pthread_join(pool->workers[t], NULL);
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->work_ready);
  pthread_cond_destroy(&pool->work_done);
  free(pool->workers);
  free(pool->shares);
  free(pool);
}

static int hire(struct pool *pool, int number, const pthread_attr_t *attributes) {
  struct hired *hired = malloc(sizeof *hired);
  if (!hired) return 0;
  *hired = (struct hired){pool, number};
  if (!pthread_create(&pool->workers[number], attributes, worker, hired)) return 1;
  free(hired);
  return 0;
}

void *ansor_pool_create(int threads) {
  if (threads < 1) threads = 1;
  struct pool *pool = aligned_alloc(LINE, sizeof *pool);
  struct share *shares = aligned_alloc(LINE, (size_t)threads * sizeof *shares);
  pthread_t *workers = calloc((size_t)threads, sizeof *workers);
  if (!pool || !shares || !workers) {
    free(pool);
    free(shares);
    free(workers);
    return NULL;
  }
  *pool = (struct pool){.forks = atomic_load(&forks), .shares = shares, .workers = workers};
  for (int t = 0; t < threads; t++) {
    atomic_init(&shares[t].span, 0);
    atomic_init(&shares[t].place, -1);
  }
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work_ready, NULL);
  pthread_cond_init(&pool->work_done, NULL);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK);
  int hands = 1;
  while (hands < threads && hire(pool, hands, &attributes)) hands++; /* fewer threads still finish the work */
  pthread_attr_destroy(&attributes);
  pool->threads = hands; /* workers read it in a loop only, after the gate */
  return pool;
}
