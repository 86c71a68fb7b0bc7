/* A depthwise convolution of bytes for Cortex-M4, written by hand after what CMSIS-NN's documentation describes: a patch of the image becomes a column of 16-bit
 * numbers, then four channels at a time meet two places of the kernel with each SMLAD. NHWC, weights HWO, 3x3, padding 1, step 1, int32 sums. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy
#define memset __builtin_memset

enum { HEIGHT = 25, WIDTH = 5, CHANNELS = 64, SIZE = 3, PLACES = SIZE * SIZE };

static inline int word(const void *p) {
  int value;
  memcpy(&value, p, 4);
  return value;
}

static inline int low(int a, int b) { return (a & 0xffff) | (int)((unsigned)b << 16); }
static inline int high(int a, int b) { return (int)(((unsigned)a >> 16) | ((unsigned)b & 0xffff0000u)); }

static void column(const signed char *image, int y, int x, int *to) {
  for (int row = y - 1; row <= y + 1; ++row)
    for (int col = x - 1; col <= x + 1; ++col) {
      const signed char *from = image + (row * WIDTH + col) * CHANNELS;
      int inside = row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
      for (int c = 0; c < CHANNELS; c += 4) {
        int bytes = inside ? word(from + c) : 0;
        *to++ = __sxtb16(bytes);
        *to++ = __sxtb16(__ror(bytes, 8));
      }
    }
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  int *out = args[2], columns[PLACES * CHANNELS / 2];
  for (int y = 0; y < HEIGHT; ++y)
    for (int x = 0; x < WIDTH; ++x, out += CHANNELS) {
      column(image, y, x, columns);
      for (int c = 0; c < CHANNELS; c += 4) {
        const int *a = columns + c / 2;
        const signed char *w = weights + c;
        int s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        for (int k = PLACES / 2; k > 0; --k) {
          int first = word(w), second = word(w + CHANNELS);
          int x0 = __sxtb16(first), x1 = __sxtb16(__ror(first, 8)), y0 = __sxtb16(second), y1 = __sxtb16(__ror(second, 8));
          int a0 = a[0], a1 = a[1], b0 = a[CHANNELS / 2], b1 = a[CHANNELS / 2 + 1];
          s0 = __smlad(low(x0, y0), low(a0, b0), s0);
          s2 = __smlad(high(x0, y0), high(a0, b0), s2);
          s1 = __smlad(low(x1, y1), low(a1, b1), s1);
          s3 = __smlad(high(x1, y1), high(a1, b1), s3);
          w += 2 * CHANNELS;
          a += CHANNELS;
        }
        s0 += w[0] * (short)a[0];
        s2 += w[2] * (a[0] >> 16);
        s1 += w[1] * (short)a[1];
        s3 += w[3] * (a[1] >> 16);
        out[c] = s0;
        out[c + 1] = s1;
        out[c + 2] = s2;
        out[c + 3] = s3;
      }
    }
  (void)workspace;
}
