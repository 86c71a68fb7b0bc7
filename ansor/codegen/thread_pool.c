/* A small thread pool for generated kernels: no OpenMP, no spinning.
 *
 * ansor_parallel_for runs body(ctx, begin, end) over [0, n) cut into one chunk per thread; the caller works too. Workers sleep on a
 * condition variable between loops, so an idle pool costs nothing. One loop runs at a time.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

typedef void (*loop_body)(void *ctx, long begin, long end);

struct pool {
  int threads;
  int stopping;
  pthread_mutex_t lock;
  pthread_cond_t work_ready, work_done;
  loop_body body;
  void *ctx;
  long n, next, chunk;
  long round;
  int running;
  pthread_t *workers;
};

/* Takes chunks until none is left. Called and left with the lock held. */
static void take_chunks(struct pool *pool) {
  while (pool->next < pool->n) {
    long begin = pool->next, end = begin + pool->chunk;
    if (end > pool->n) end = pool->n;
    pool->next = end;
    loop_body body = pool->body;
    void *ctx = pool->ctx;
    pthread_mutex_unlock(&pool->lock);
    body(ctx, begin, end);
    pthread_mutex_lock(&pool->lock);
  }
}

static void *worker(void *argument) {
  struct pool *pool = argument;
  long seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stopping && pool->round == seen) pthread_cond_wait(&pool->work_ready, &pool->lock);
    if (pool->stopping) break;
    seen = pool->round;
    pool->running++;
    take_chunks(pool);
    pool->running--;
    if (pool->running == 0) pthread_cond_signal(&pool->work_done);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

void ansor_pool_destroy(void *handle) {
  struct pool *pool = handle;
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->stopping = 1;
  pthread_cond_broadcast(&pool->work_ready);
  pthread_mutex_unlock(&pool->lock);
  for (int t = 0; t < pool->threads - 1; t++) pthread_join(pool->workers[t], NULL);
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->work_ready);
  pthread_cond_destroy(&pool->work_done);
  free(pool->workers);
  free(pool);
}

void *ansor_pool_create(int threads) {
  struct pool *pool = calloc(1, sizeof *pool);
  if (!pool) return NULL;
  pool->workers = calloc((size_t)(threads > 1 ? threads - 1 : 1), sizeof *pool->workers);
  if (!pool->workers) { free(pool); return NULL; }
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work_ready, NULL);
  pthread_cond_init(&pool->work_done, NULL);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, (size_t)8 << 20); /* tiles live on the stack */
  pool->threads = 1;
  for (int t = 0; t < threads - 1; t++) {
    if (pthread_create(&pool->workers[t], &attributes, worker, pool)) break; /* fewer threads still finish the work */
    pool->threads++;
  }
  pthread_attr_destroy(&attributes);
  return pool;
}

void ansor_parallel_for(void *handle, loop_body body, void *ctx, long n) {
  struct pool *pool = handle;
  if (!pool || pool->threads == 1 || n <= 1) {
    if (n > 0) body(ctx, 0, n);
    return;
  }
  pthread_mutex_lock(&pool->lock);
  pool->body = body;
  pool->ctx = ctx;
  pool->n = n;
  pool->next = 0;
  /* Four chunks a thread: a thread that is held up does not hold up the loop. */
  pool->chunk = (n + 4L * pool->threads - 1) / (4L * pool->threads);
  pool->round++;
  pthread_cond_broadcast(&pool->work_ready);
  take_chunks(pool);
  while (pool->running) pthread_cond_wait(&pool->work_done, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}
