/* A convolution of bytes for Cortex-M4, written by hand after what CMSIS-NN's papers and documentation describe: a patch of the image becomes a column of
 * 16-bit numbers, two columns at a time are multiplied by two rows of the kernel, with SMLAD. Numbers of a word are in the order 0, 2, 1, 3, which SXTB16 gives
 * for free. NHWC, weights OHWI, 3x3, padding 1, step 1, int32 sums. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy
#define memset __builtin_memset

enum { HEIGHT = 16, WIDTH = 16, IN = 16, OUT = 32, SIZE = 3, COLUMN = SIZE * SIZE * IN };

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
  for (int row = y - 1; row <= y + 1; ++row)
    for (int col = x - 1; col <= x + 1; ++col) {
      if (row < 0 || row >= HEIGHT || col < 0 || col >= WIDTH) {
        memset(to, 0, 2 * IN);
        to += IN / 2;
      } else {
        to = widened(image + (row * WIDTH + col) * IN, to, IN);
      }
    }
  return to;
}

static void multiplied(const signed char *weights, const int *columns, int *out) {
  for (int channel = 0; channel < OUT; channel += 2, weights += 2 * COLUMN, out += 2) {
    const signed char *w0 = weights, *w1 = weights + COLUMN;
    const int *c0 = columns, *c1 = columns + COLUMN / 2;
    int s00 = 0, s01 = 0, s10 = 0, s11 = 0;
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
    out[0] = s00;
    out[1] = s10;
    out[OUT] = s01;
    out[OUT + 1] = s11;
  }
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  int *out = args[2], columns[COLUMN];
  for (int y = 0; y < HEIGHT; ++y)
    for (int x = 0; x < WIDTH; x += 2, out += 2 * OUT) {
      column(image, y, x + 1, column(image, y, x, columns));
      multiplied(weights, columns, out);
    }
  (void)workspace;
}
