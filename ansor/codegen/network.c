/* A residual network of small layers over many rows at once.

   Rows are the lanes of vectors: a block of activations is [units, ROWS], so that a weight is one number for a whole vector and no layer transposes anything.
   Eight units of a layer are held in registers while its inputs go by. The sum of a row is taken in the same order wherever in a block it stands, so rows
   that are equal have equal outputs: ansor_network_distinct finds those that need to be looked at. */

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

static uint64_t hashed(const char *row, int64_t bytes) {
    enum { LINES = 4 }; /* in flight, as each multiplication waits for the one before */
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t line[LINES] = {1, 2, 3, 4}, words[LINES] = {0};
    int64_t k = 0;
    for (; k + (int64_t)sizeof words <= bytes; k += sizeof words) {
        memcpy(words, row + k, sizeof words);
        for (int i = 0; i < LINES; i++) {
            line[i] = (line[i] ^ words[i]) * odd;
            line[i] ^= line[i] >> 29;
        }
    }
    memset(words, 0, sizeof words);
    memcpy(words, row + k, bytes - k);
    uint64_t hash = 0;
    for (int i = 0; i < LINES; i++) {
        hash = (hash ^ line[i] ^ words[i]) * odd;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The different rows among `count` rows [count, width], bit by bit: kept: the first of each, in order; place: for each row, which of these it equals.
   table: room for `slots` numbers, a power of two above count. Returns how many there are. */
int64_t ansor_network_distinct(const float *rows, int64_t count, int64_t width, int64_t *kept, int64_t *place, int32_t *table, int64_t slots) {
    const int64_t bytes = width * sizeof *rows;
    int64_t found = 0;
    memset(table, 0, slots * sizeof *table);
    for (int64_t i = 0; i < count; i++) {
        uint64_t slot = hashed((const char *)(rows + i * width), bytes) & (slots - 1);
        while (table[slot] && memcmp(rows + kept[table[slot] - 1] * width, rows + i * width, bytes)) slot = (slot + 1) & (slots - 1);
        if (!table[slot]) {
            kept[found++] = i;
            table[slot] = (int32_t)found;
        }
        place[i] = table[slot] - 1;
    }
    return found;
}
