/* A residual network of small layers over many rows at once.

   Rows are the lanes of vectors: a block of activations is [units, ROWS], so that a weight is one number for a whole vector and no layer transposes anything.
   Eight units of a layer are held in registers while its inputs go by. The sum of a row is taken in the same order wherever in a block it stands. */

#include <stdint.h>
#include <string.h>

enum { LANES = 16, VECTORS = 2, ROWS = LANES * VECTORS, UNITS = 8 };

typedef float floats __attribute__((vector_size(4 * LANES)));

struct network {
    int64_t width, inputs, units, layers; /* width: of a row; units: of every layer, a multiple of UNITS; layers: after the first */
    const int32_t *column;         /* [inputs] of a row, those that say something */
    const float *mean, *scale;     /* [inputs] */
    const float *first, *first_bias;
    const float *weights, *bias;   /* [layers, units, units], [layers, units]; weights of a layer lie as [units / UNITS, inputs of the layer, UNITS] */
    const float *last;             /* [units] */
    float last_bias, limit;        /* limit: inputs are held this close to the mean, in deviations */
};

static inline floats larger(floats a, floats b) {
    typedef int32_t flags __attribute__((vector_size(4 * LANES)));
    const flags more = a > b;
    return (floats)(((flags)a & more) | ((flags)b & ~more));
}

/* out = max(weights * in + bias, 0), added to `in` where it is a later layer. */
static void layer(const float *weights, const float *bias, int64_t inputs, int64_t units, const floats *in, floats *out, int later) {
    const floats zero = {0};
    for (int64_t unit = 0; unit < units; unit += UNITS) {
        const float *w = weights + unit * inputs;
        floats sum[UNITS][VECTORS];
        for (int u = 0; u < UNITS; u++)
            for (int v = 0; v < VECTORS; v++) sum[u][v] = zero + bias[unit + u];
        for (int64_t k = 0; k < inputs; k++)
            for (int u = 0; u < UNITS; u++)
                for (int v = 0; v < VECTORS; v++) sum[u][v] += in[k * VECTORS + v] * w[k * UNITS + u];
        for (int u = 0; u < UNITS; u++)
            for (int v = 0; v < VECTORS; v++) {
                const floats active = larger(sum[u][v], zero);
                out[(unit + u) * VECTORS + v] = later ? in[(unit + u) * VECTORS + v] + active : active;
            }
    }
}

/* The output for each of `count` rows [count, width], and where `parts` [count, units] is given what each unit adds to it; scratch: room for
   (inputs + 2 * units) * ROWS + LANES floats. */
void ansor_network_run(const struct network *net, const float *rows, int64_t count, float *scratch, double *outputs, float *parts) {
    floats *const in = (floats *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    floats *const halves[2] = {in + net->inputs * VECTORS, in + (net->inputs + net->units) * VECTORS};
    for (int64_t begin = 0; begin < count; begin += ROWS) {
        const int64_t n = count - begin < ROWS ? count - begin : ROWS;
        float *const block = (float *)in;
        for (int64_t i = 0; i < ROWS; i++) {
            const float *row = rows + (begin + (i < n ? i : n - 1)) * net->width;
            for (int64_t k = 0; k < net->inputs; k++) {
                float x = (row[net->column[k]] - net->mean[k]) * net->scale[k];
                x = x < net->limit ? x : net->limit;
                block[k * ROWS + i] = x > -net->limit ? x : -net->limit;
            }
        }
        layer(net->first, net->first_bias, net->inputs, net->units, in, halves[0], 0);
        for (int64_t l = 0; l < net->layers; l++)
            layer(net->weights + l * net->units * net->units, net->bias + l * net->units, net->units, net->units, halves[l & 1], halves[(l + 1) & 1], 1);
        const floats *top = halves[net->layers & 1];
        floats sum[VECTORS];
        for (int v = 0; v < VECTORS; v++) {
            sum[v] = (floats){0} + net->last_bias;
            for (int64_t k = 0; k < net->units; k++) sum[v] += top[k * VECTORS + v] * net->last[k];
        }
        for (int64_t i = 0; i < n; i++) outputs[begin + i] = ((const float *)sum)[i];
        if (!parts) continue;
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < net->units; k++) parts[(begin + i) * net->units + k] = ((const float *)top)[k * ROWS + i] * net->last[k];
    }
}
