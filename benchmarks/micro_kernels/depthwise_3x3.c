/* A depthwise 3x3 convolution of bytes, written by hand after what CMSIS-NN's documentation says of its special case for that window: no column is written; four
 * channels at a time, each word of image and kernel is loaded once, and halves of words are multiplied. NHWC, weights HWO. IN % 4 == 0. */
#include <arm_acle.h>

#define memcpy __builtin_memcpy

static inline int word(const void *p) {
  int value;
  memcpy(&value, p, 4);
  return value;
}

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32);
  return (signed char)__ssat(value, 8);
}

#define TAP(col)                                                                                       \
  {                                                                                                    \
    int x = word(from + (col) * IN), w = word(weight + (col) * IN);                                    \
    int x02 = __sxtb16(x), x13 = __sxtb16(__ror(x, 8)), w02 = __sxtb16(w), w13 = __sxtb16(__ror(w, 8)); \
    s0 = __smlabb(x02, w02, s0);                                                                       \
    s1 = __smlabb(x13, w13, s1);                                                                       \
    s2 = __smlatt(x02, w02, s2);                                                                       \
    s3 = __smlatt(x13, w13, s3);                                                                       \
  }

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int y = -PAD; y < OUT_HEIGHT * STRIDE - PAD; y += STRIDE)
    for (int x = -PAD; x < OUT_WIDTH * STRIDE - PAD; x += STRIDE, out += IN) {
      int top = y < 0 ? -y : 0, bottom = y + 3 > HEIGHT ? HEIGHT - y : 3;
      for (int c = 0; c < IN; c += 4) {
        int s0 = bias[c], s1 = bias[c + 1], s2 = bias[c + 2], s3 = bias[c + 3];
        const signed char *from = image + ((y + top) * WIDTH + x) * IN + c, *weight = weights + top * 3 * IN + c;
        for (int row = top; row < bottom; ++row, from += WIDTH * IN, weight += 3 * IN) {
          if (x >= 0) TAP(0)
          TAP(1)
          if (x + 2 < WIDTH) TAP(2)
        }
        out[c] = rescaled(s0, multipliers[c]);
        out[c + 1] = rescaled(s1, multipliers[c + 1]);
        out[c + 2] = rescaled(s2, multipliers[c + 2]);
        out[c + 3] = rescaled(s3, multipliers[c + 3]);
      }
    }
  (void)workspace;
}
