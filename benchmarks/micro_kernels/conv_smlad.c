/* A convolution of bytes for Cortex-M with the DSP extension, written by hand after the published descriptions of CMSIS-NN: a patch of the image becomes a
 * column of 16-bit numbers; two columns at a time are multiplied by two rows of the kernel, with SMLAD. Numbers of a word are in the order 0, 2, 1, 3, which
 * SXTB16 gives for free. NHWC, weights OHWI; an odd last column is computed alone. IN % 4 == 0 and OUT % 2 == 0. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy
#define memset __builtin_memset

enum { COLUMN = TAPS_Y * TAPS_X * IN };

static inline int word(const signed char *p) {
  int value;
  memcpy(&value, p, 4);
  return value;
}

static inline int *widened(const signed char *from, int *to, int count) {
  for (; count > 0; count -= 4, from += 4) {
    int bytes = word(from);
    *to++ = __sxtb16(bytes);
    *to++ = __sxtb16(__ror(bytes, 8));
  }
  return to;
}

static int *column(const signed char *image, int y, int x, int *to) {
  for (int row = y; row < y + TAPS_Y; ++row)
    for (int col = x; col < x + TAPS_X; ++col) {
      if (row < 0 || row >= HEIGHT || col < 0 || col >= WIDTH) {
        memset(to, 0, 2 * IN);
        to += IN / 2;
      } else {
        to = widened(image + (row * WIDTH + col) * IN, to, IN);
      }
    }
  return to;
}

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32);
  return (signed char)__ssat(value, 8);
}

static void multiplied(const signed char *weights, const int *bias, const int *multipliers, const int *columns, signed char *out) {
  for (int channel = 0; channel < OUT; channel += 2, weights += 2 * COLUMN, out += 2) {
    const signed char *w0 = weights, *w1 = weights + COLUMN;
    const int *c0 = columns, *c1 = columns + COLUMN / 2;
    int s00 = bias[channel], s01 = s00, s10 = bias[channel + 1], s11 = s10;
    for (int k = COLUMN / 4; k > 0; --k) {
      int a0 = word(w0), a1 = word(w1), b0 = *c0++, b1 = *c1++;
      int a00 = __sxtb16(a0), a01 = __sxtb16(__ror(a0, 8)), a10 = __sxtb16(a1), a11 = __sxtb16(__ror(a1, 8));
      s00 = __smlad(a00, b0, s00);
      s01 = __smlad(a00, b1, s01);
      s10 = __smlad(a10, b0, s10);
      s11 = __smlad(a10, b1, s11);
      b0 = *c0++;
      b1 = *c1++;
      s00 = __smlad(a01, b0, s00);
      s01 = __smlad(a01, b1, s01);
      s10 = __smlad(a11, b0, s10);
      s11 = __smlad(a11, b1, s11);
      w0 += 4;
      w1 += 4;
    }
    out[0] = rescaled(s00, multipliers[channel]);
    out[1] = rescaled(s10, multipliers[channel + 1]);
    out[OUT] = rescaled(s01, multipliers[channel]);
    out[OUT + 1] = rescaled(s11, multipliers[channel + 1]);
  }
}

static void multiplied_alone(const signed char *weights, const int *bias, const int *multipliers, const int *columns, signed char *out) {
  for (int channel = 0; channel < OUT; ++channel) {
    const int *c = columns;
    int sum = bias[channel];
    for (int k = COLUMN / 4; k > 0; --k, weights += 4) {
      int a = word(weights);
      sum = __smlad(__sxtb16(a), *c++, sum);
      sum = __smlad(__sxtb16(__ror(a, 8)), *c++, sum);
    }
    out[channel] = rescaled(sum, multipliers[channel]);
  }
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  int columns[COLUMN], *to = columns;
  for (int y = 0; y < OUT_HEIGHT; ++y)
    for (int x = 0; x < OUT_WIDTH; ++x) {
      to = column(image, y * STRIDE - PAD, x * STRIDE - PAD, to);
      if (to == columns + COLUMN) {
        multiplied(weights, bias, multipliers, columns, out);
        out += 2 * OUT;
        to = columns;
      }
    }
  if (to != columns) multiplied_alone(weights, bias, multipliers, columns, out);
  (void)workspace;
}
