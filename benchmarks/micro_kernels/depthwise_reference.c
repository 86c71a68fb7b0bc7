/* A depthwise convolution of bytes as plain reference loops, written by hand after what TensorFlow Lite Micro documents of its reference kernels: see
 * conv_reference.c. NHWC, weights HWC, one output channel for each input channel. */
static const int input_offset = 0, output_offset = 0, least = -128, most = 127;

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32) + output_offset;
  value = value < least ? least : value;
  return (signed char)(value > most ? most : value);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *image = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int out_y = 0; out_y < OUT_HEIGHT; ++out_y)
    for (int out_x = 0; out_x < OUT_WIDTH; ++out_x)
      for (int channel = 0; channel < IN; ++channel) {
        int sum = 0;
        for (int tap_y = 0; tap_y < TAPS_Y; ++tap_y)
          for (int tap_x = 0; tap_x < TAPS_X; ++tap_x) {
            int y = out_y * STRIDE - PAD + tap_y, x = out_x * STRIDE - PAD + tap_x;
            if (y < 0 || y >= HEIGHT || x < 0 || x >= WIDTH) continue;
            int value = image[(y * WIDTH + x) * IN + channel], weight = weights[(tap_y * TAPS_X + tap_x) * IN + channel];
            sum += weight * (value + input_offset);
          }
        out[(out_y * OUT_WIDTH + out_x) * IN + channel] = rescaled(sum + bias[channel], multipliers[channel]);
      }
  (void)workspace;
}
