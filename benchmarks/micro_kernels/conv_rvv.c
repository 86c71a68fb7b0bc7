/* A convolution of bytes for RISC-V with vectors, written by hand: a patch of the image is copied into a column for each of three places; one instruction
 * multiplies the weights of all channels, made 16 bits wide, by one number of a column and adds them to sums of 32 bits. NHWC, weights HWIO. */
#include <riscv_vector.h>

enum { COLUMN = TAPS_Y * TAPS_X * IN, PLACES = OUT_HEIGHT * OUT_WIDTH };

static void column(const signed char *image, int y, int x, signed char *to) {
  for (int row = y; row < y + TAPS_Y; ++row)
    for (int col = x; col < x + TAPS_X; ++col, to += IN) {
      int inside = row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
      for (unsigned long c = 0, n; c < IN; c += n) {
        n = __riscv_vsetvl_e8m8(IN - c);
        vint8m8_t bytes = inside ? __riscv_vle8_v_i8m8(image + (row * WIDTH + col) * IN + c, n) : __riscv_vmv_v_x_i8m8(0, n);
        __riscv_vse8_v_i8m8(to + c, bytes, n);
      }
    }
}

static inline void rescaled(vint32m8_t sums, const int *multipliers, signed char *out, unsigned long n) {
  vint32m8_t value = __riscv_vmulh_vv_i32m8(sums, __riscv_vle32_v_i32m8(multipliers, n), n);
  value = __riscv_vmin_vx_i32m8(__riscv_vmax_vx_i32m8(value, -128, n), 127, n);
  __riscv_vse8_v_i8m2(out, __riscv_vncvt_x_x_w_i8m2(__riscv_vncvt_x_x_w_i16m4(value, n), n), n);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4], columns[3][COLUMN];
  for (int place = 0; place < PLACES; place += 3, out += 3 * OUT) {
    int count = PLACES - place < 3 ? PLACES - place : 3;
    for (int k = 0; k < count; ++k) column(image, (place + k) / OUT_WIDTH * STRIDE - PAD, (place + k) % OUT_WIDTH * STRIDE - PAD, columns[k]);
    for (unsigned long channel = 0, n; channel < OUT; channel += n) {
      n = __riscv_vsetvl_e32m8(OUT - channel);
      vint32m8_t s0 = __riscv_vle32_v_i32m8(bias + channel, n), s1 = s0, s2 = s0;
      const signed char *w = weights + channel;
      for (int k = 0; k < COLUMN; ++k, w += OUT) {
        vint16m4_t b = __riscv_vsext_vf2_i16m4(__riscv_vle8_v_i8m2(w, n), n);
        s0 = __riscv_vwmacc_vx_i32m8(s0, columns[0][k], b, n);
        s1 = __riscv_vwmacc_vx_i32m8(s1, columns[1][k], b, n);
        s2 = __riscv_vwmacc_vx_i32m8(s2, columns[2][k], b, n);
      }
      rescaled(s0, multipliers + channel, out + channel, n);
      if (count > 1) rescaled(s1, multipliers + channel, out + OUT + channel, n);
      if (count > 2) rescaled(s2, multipliers + channel, out + 2 * OUT + channel, n);
    }
  }
  (void)workspace;
}
