/* A depthwise convolution of bytes for Cortex-M with the DSP extension, written by hand after the published descriptions of CMSIS-NN: a patch of the image
 * becomes a column of 16-bit numbers, then four channels at a time meet two places of the kernel with each SMLAD. NHWC, weights HWO. IN % 4 == 0. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy

enum { PLACES = TAPS_Y * TAPS_X };

static inline int word(const void *p) {
  int value;
  memcpy(&value, p, 4);
  return value;
}

static inline int low(int a, int b) { return (a & 0xffff) | (int)((unsigned)b << 16); }
static inline int high(int a, int b) { return (int)(((unsigned)a >> 16) | ((unsigned)b & 0xffff0000u)); }

static void column(const signed char *image, int y, int x, int *to) {
  for (int row = y; row < y + TAPS_Y; ++row)
    for (int col = x; col < x + TAPS_X; ++col) {
      const signed char *from = image + (row * WIDTH + col) * IN;
      int inside = row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
      for (int c = 0; c < IN; c += 4) {
        int bytes = inside ? word(from + c) : 0;
        *to++ = __sxtb16(bytes);
        *to++ = __sxtb16(__ror(bytes, 8));
      }
    }
}

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32);
  return (signed char)__ssat(value, 8);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  int columns[PLACES * IN / 2];
  for (int y = 0; y < OUT_HEIGHT; ++y)
    for (int x = 0; x < OUT_WIDTH; ++x, out += IN) {
      column(image, y * STRIDE - PAD, x * STRIDE - PAD, columns);
      for (int c = 0; c < IN; c += 4) {
        const int *a = columns + c / 2;
        const signed char *w = weights + c;
        int s0 = bias[c], s1 = bias[c + 1], s2 = bias[c + 2], s3 = bias[c + 3];
        for (int k = PLACES / 2; k > 0; --k) {
          int first = word(w), second = word(w + IN);
          int x0 = __sxtb16(first), x1 = __sxtb16(__ror(first, 8)), y0 = __sxtb16(second), y1 = __sxtb16(__ror(second, 8));
          int a0 = a[0], a1 = a[1], b0 = a[IN / 2], b1 = a[IN / 2 + 1];
          s0 = __smlad(low(x0, y0), low(a0, b0), s0);
          s2 = __smlad(high(x0, y0), high(a0, b0), s2);
          s1 = __smlad(low(x1, y1), low(a1, b1), s1);
          s3 = __smlad(high(x1, y1), high(a1, b1), s3);
          w += 2 * IN;
          a += IN;
        }
        if (PLACES % 2) {
          s0 += w[0] * (short)a[0];
          s2 += w[2] * (a[0] >> 16);
          s1 += w[1] * (short)a[1];
          s3 += w[3] * (a[1] >> 16);
        }
        out[c] = rescaled(s0, multipliers[c]);
        out[c + 1] = rescaled(s1, multipliers[c + 1]);
        out[c + 2] = rescaled(s2, multipliers[c + 2]);
        out[c + 3] = rescaled(s3, multipliers[c + 3]);
      }
    }
  (void)workspace;
}
