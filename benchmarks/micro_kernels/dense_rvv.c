/* A dense layer of bytes for RISC-V with vectors, written by hand: eight registers hold a row's products of 16 bits, and one instruction adds them up.
 * Weights [OUT, IN]. OUT % 4 == 0. */
#include <riscv_vector.h>

static inline vint32m1_t row(const signed char *w, vint8m4_t a, vint32m1_t sum, unsigned long n) {
  return __riscv_vwredsum_vs_i16m8_i32m1(__riscv_vwmul_vv_i16m8(a, __riscv_vle8_v_i8m4(w, n), n), sum, n);
}

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32);
  return value < -128 ? -128 : value > 127 ? 127 : value;
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *data = args[0], *w = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int channel = 0; channel < OUT; channel += 4, w += 4 * IN) {
    vint32m1_t s0 = __riscv_vmv_s_x_i32m1(bias[channel], 1), s1 = __riscv_vmv_s_x_i32m1(bias[channel + 1], 1);
    vint32m1_t s2 = __riscv_vmv_s_x_i32m1(bias[channel + 2], 1), s3 = __riscv_vmv_s_x_i32m1(bias[channel + 3], 1);
    for (unsigned long k = 0, n; k < IN; k += n) {
      n = __riscv_vsetvl_e8m4(IN - k);
      vint8m4_t a = __riscv_vle8_v_i8m4(data + k, n);
      s0 = row(w + k, a, s0, n);
      s1 = row(w + IN + k, a, s1, n);
      s2 = row(w + 2 * IN + k, a, s2, n);
      s3 = row(w + 3 * IN + k, a, s3, n);
    }
    out[channel] = rescaled(__riscv_vmv_x_s_i32m1_i32(s0), multipliers[channel]);
    out[channel + 1] = rescaled(__riscv_vmv_x_s_i32m1_i32(s1), multipliers[channel + 1]);
    out[channel + 2] = rescaled(__riscv_vmv_x_s_i32m1_i32(s2), multipliers[channel + 2]);
    out[channel + 3] = rescaled(__riscv_vmv_x_s_i32m1_i32(s3), multipliers[channel + 3]);
  }
  (void)workspace;
}
