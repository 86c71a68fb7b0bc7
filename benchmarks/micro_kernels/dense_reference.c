/* A dense layer of bytes as plain reference loops, written by hand after what TensorFlow Lite Micro documents of its reference kernels: see conv_reference.c.
 * Weights [OUT, IN]. */
static const int input_offset = 0, output_offset = 0, least = -128, most = 127;

static inline signed char rescaled(int sum, int multiplier) {
  int value = (int)((long long)sum * multiplier >> 32) + output_offset;
  value = value < least ? least : value;
  return (signed char)(value > most ? most : value);
}

void by_hand(void *const *args, unsigned char *workspace) {
  const signed char *data = args[0], *weights = args[1];
  const int *bias = args[2], *multipliers = args[3];
  signed char *out = args[4];
  for (int channel = 0; channel < OUT; ++channel) {
    int sum = 0;
    for (int from = 0; from < IN; ++from) sum += weights[channel * IN + from] * (data[from] + input_offset);
    out[channel] = rescaled(sum + bias[channel], multipliers[channel]);
  }
  (void)workspace;
}
