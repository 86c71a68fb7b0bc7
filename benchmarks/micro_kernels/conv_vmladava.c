/* A convolution of bytes for Cortex-M with Helium, written by hand: a patch of the image is copied into a column of bytes; four rows of the kernel are multiplied
 * by it with VMLADAVA, sixteen bytes at a time. NHWC, weights OHWI. IN % 16 == 0 and OUT % 4 == 0. */
#include <arm_mve.h>

enum { COLUMN = TAPS_Y * TAPS_X * IN };

static void column(const signed char *image, int y, int x, signed char *to) {
  for (int row = y; row < y + TAPS_Y; ++row)
    for (int col = x; col < x + TAPS_X; ++col)
      for (int c = 0; c < IN; c += 16, to += 16) {
        int inside = row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
        vst1q_s8(to, inside ? vld1q_s8(image + (row * WIDTH + col) * IN + c) : vdupq_n_s8(0));
      }
}

static inline void rescaled(int32x4_t sums, const int *multipliers, signed char *out) {
  int32x4_t value = vmulhq_s32(sums, vld1q_s32(multipliers));
  value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(-128)), vdupq_n_s32(127));
  vstrbq_s32(out, value);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  signed char columns[COLUMN] __attribute__((aligned(16)));
  for (int y = 0; y < OUT_HEIGHT; ++y)
    for (int x = 0; x < OUT_WIDTH; ++x, out += OUT) {
      column(image, y * STRIDE - PAD, x * STRIDE - PAD, columns);
      const signed char *w = weights;
      for (int channel = 0; channel < OUT; channel += 4, w += 3 * COLUMN) {
        int s0 = bias[channel], s1 = bias[channel + 1], s2 = bias[channel + 2], s3 = bias[channel + 3];
        const signed char *c = columns;
        for (int k = 0; k < COLUMN; k += 16, c += 16, w += 16) {
          int8x16_t a = vld1q_s8(c);
          s0 = vmladavaq_s8(s0, a, vld1q_s8(w));
          s1 = vmladavaq_s8(s1, a, vld1q_s8(w + COLUMN));
          s2 = vmladavaq_s8(s2, a, vld1q_s8(w + 2 * COLUMN));
          s3 = vmladavaq_s8(s3, a, vld1q_s8(w + 3 * COLUMN));
        }
        rescaled((int32x4_t){s0, s1, s2, s3}, multipliers + channel, out + channel);
      }
    }
  (void)workspace;
}
