/* Threads for loops: pass `ansor_parallel_for`, and what `ansor_pool_create` returned, to functions that take `parallel_for` and `pool`. */

#ifndef ANSOR_THREAD_POOL_H
#define ANSOR_THREAD_POOL_H

#ifdef __cplusplus
extern "C" {
#endif

/* A pool of that many threads, of which the caller is one; a null pointer if there is no memory for it. */
void *ansor_pool_create(int threads);

/* Calls body(ctx, begin, end) for ranges that together cover 0 to n, and returns when all calls have. If the threads are busy, the caller does everything. */
void ansor_parallel_for(void *pool, void (*body)(void *, long, long), void *ctx, long n);

void ansor_pool_destroy(void *pool);

#ifdef __cplusplus
}
#endif

#endif
