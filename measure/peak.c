/* Measures the limits of this machine: fused multiply-adds in registers, and reading memory once. */
#include <time.h>

#ifndef VECTOR_BYTES
#define VECTOR_BYTES 32
#endif
#define CHAINS 12

typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of `rounds` x CHAINS independent multiply-adds of whole vectors. */
double ansor_peak_seconds(long rounds, float *sink) {
  vec acc[CHAINS], a, b;
  for (int l = 0; l < (int)(VECTOR_BYTES / sizeof(float)); ++l) a[l] = 0.999f, b[l] = sink[0];
  for (int c = 0; c < CHAINS; ++c) acc[c] = a * (float)c;
  double start = now();
  for (long r = 0; r < rounds; ++r) {
    acc[0] = acc[0] * a + b; acc[1] = acc[1] * a + b; acc[2] = acc[2] * a + b; acc[3] = acc[3] * a + b;
    acc[4] = acc[4] * a + b; acc[5] = acc[5] * a + b; acc[6] = acc[6] * a + b; acc[7] = acc[7] * a + b;
    acc[8] = acc[8] * a + b; acc[9] = acc[9] * a + b; acc[10] = acc[10] * a + b; acc[11] = acc[11] * a + b;
  }
  double seconds = now() - start;
  for (int c = 1; c < CHAINS; ++c) acc[0] += acc[c];
  for (int l = 0; l < (int)(VECTOR_BYTES / sizeof(float)); ++l) sink[l] += acc[0][l];
  return seconds;
}

/* Seconds of reading `count` floats once. */
double ansor_read_seconds(const float *data, long count, float *sink) {
  const long lanes = VECTOR_BYTES / sizeof(float);
  vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
  double start = now();
  for (long i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 += *(const vec *)(data + i);
    s1 += *(const vec *)(data + i + lanes);
    s2 += *(const vec *)(data + i + 2 * lanes);
    s3 += *(const vec *)(data + i + 3 * lanes);
  }
  double seconds = now() - start;
  s0 += s1 + s2 + s3;
  for (long l = 0; l < lanes; ++l) sink[l] += s0[l];
  return seconds;
}
