/* A dense layer of bytes for Cortex-M with Helium, written by hand: four rows of the weights meet sixteen bytes of the input with VMLADAVA.
 * Weights [OUT, IN]. IN % 16 == 0 and OUT % 4 == 0. */
#include <arm_mve.h>

static inline void rescaled(int32x4_t sums, const int *multipliers, signed char *out) {
  int32x4_t value = vmulhq_s32(sums, vld1q_s32(multipliers));
  value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(-128)), vdupq_n_s32(127));
  vstrbq_s32(out, value);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *data = args[0], *w = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int channel = 0; channel < OUT; channel += 4, w += 3 * IN) {
    int s0 = bias[channel], s1 = bias[channel + 1], s2 = bias[channel + 2], s3 = bias[channel + 3];
    for (int k = 0; k < IN; k += 16, w += 16) {
      int8x16_t a = vld1q_s8(data + k);
      s0 = vmladavaq_s8(s0, a, vld1q_s8(w));
      s1 = vmladavaq_s8(s1, a, vld1q_s8(w + IN));
      s2 = vmladavaq_s8(s2, a, vld1q_s8(w + 2 * IN));
      s3 = vmladavaq_s8(s3, a, vld1q_s8(w + 3 * IN));
    }
    rescaled((int32x4_t){s0, s1, s2, s3}, multipliers + channel, out + channel);
  }
  (void)workspace;
}
