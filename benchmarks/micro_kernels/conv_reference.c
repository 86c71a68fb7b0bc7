/* A convolution of bytes as plain reference loops, written by hand after what TensorFlow Lite Micro documents of its reference kernels: every output is summed
 * alone, each tap is tested against the edges of the image, and offsets are added to inputs and outputs. NHWC, weights OHWI. */
static const int input_offset = 0, output_offset = 0, least = -128, most = 127;

static inline int offset(int width, int channels, int y, int x, int channel) {
  return (y * width + x) * channels + channel;
}

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
      for (int channel = 0; channel < OUT; ++channel) {
        int sum = 0;
        for (int tap_y = 0; tap_y < TAPS_Y; ++tap_y) {
          int y = out_y * STRIDE - PAD + tap_y;
          for (int tap_x = 0; tap_x < TAPS_X; ++tap_x) {
            int x = out_x * STRIDE - PAD + tap_x;
            if (y < 0 || y >= HEIGHT || x < 0 || x >= WIDTH) continue;
            for (int from = 0; from < IN; ++from) {
              int value = image[offset(WIDTH, IN, y, x, from)];
              int weight = weights[channel * TAPS_Y * TAPS_X * IN + offset(TAPS_X, IN, tap_y, tap_x, from)];
              sum += weight * (value + input_offset);
            }
          }
        }
        out[offset(OUT_WIDTH, OUT, out_y, out_x, channel)] = rescaled(sum + bias[channel], multipliers[channel]);
      }
  (void)workspace;
}
