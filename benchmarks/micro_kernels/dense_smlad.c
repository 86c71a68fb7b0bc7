/* A dense layer of bytes for Cortex-M with the DSP extension, written by hand after the published descriptions of CMSIS-NN: four rows of the weights meet each
 * word of the input, all extended with SXTB16. Weights [OUT, IN]. IN % 4 == 0 and OUT % 4 == 0. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy

static inline int word(const signed char *p) {
  int value;
  memcpy(&value, p, 4);
  return value;
}

static inline int product(int sum, int w, int even, int odd) { return __smlad(__sxtb16(__ror(w, 8)), odd, __smlad(__sxtb16(w), even, sum)); }

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32);
  return (signed char)__ssat(value, 8);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *data = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int channel = 0; channel < OUT; channel += 4, weights += 4 * IN) {
    int s0 = bias[channel], s1 = bias[channel + 1], s2 = bias[channel + 2], s3 = bias[channel + 3];
    const signed char *w0 = weights, *w1 = w0 + IN, *w2 = w1 + IN, *w3 = w2 + IN;
    for (int k = 0; k < IN; k += 4) {
      int x = word(data + k), even = __sxtb16(x), odd = __sxtb16(__ror(x, 8));
      s0 = product(s0, word(w0 + k), even, odd);
      s1 = product(s1, word(w1 + k), even, odd);
      s2 = product(s2, word(w2 + k), even, odd);
      s3 = product(s3, word(w3 + k), even, odd);
    }
    out[channel] = rescaled(s0, multipliers[channel]);
    out[channel + 1] = rescaled(s1, multipliers[channel + 1]);
    out[channel + 2] = rescaled(s2, multipliers[channel + 2]);
    out[channel + 3] = rescaled(s3, multipliers[channel + 3]);
  }
  (void)workspace;
}
