/* Boosted trees over many rows at once (QuickScorer, Lucchese et al., SIGIR 2015).

   The leaves of a tree are numbered from left to right, a bit each. Every node whose condition fails takes the leaves below its left side away, in whatever
   order the nodes are looked at; the lowest bit left is the leaf. So a node is one comparison of a whole vector of rows, and nothing branches. */

#include <stdint.h>
#include <string.h>

enum { LANES = 16, VECTORS = 4, ROWS = LANES * VECTORS };

typedef float floats __attribute__((vector_size(4 * LANES)));
typedef uint32_t leaves __attribute__((vector_size(4 * LANES)));

struct forest {
    int64_t trees, columns;
    const int32_t *column;    /* [columns] of a row, those that any node reads */
    const int32_t *nodes;     /* [trees + 1] where the nodes of a tree begin */
    const int32_t *slot;      /* per node, which of the columns */
    const float *threshold;   /* per node, it goes left up to this */
    const uint32_t *right;    /* per node, all leaves but those below its left side */
    const double *values;     /* [trees, 32] of the leaves */
};

/* Sums of the leaves of each of `count` rows [count, width]; scratch: room for forest->columns * ROWS floats. */
void ansor_trees_run(const struct forest *forest, const float *rows, int64_t width, int64_t count, float *scratch, double *sums) {
    float *const block = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    for (int64_t first = 0; first < count; first += ROWS) {
        const int64_t n = count - first < ROWS ? count - first : ROWS;
        double total[ROWS] = {0};
        for (int64_t i = 0; i < ROWS; i++) {
            const float *row = rows + (first + (i < n ? i : n - 1)) * width;
            for (int64_t k = 0; k < forest->columns; k++) block[k * ROWS + i] = row[forest->column[k]];
        }
        for (int64_t tree = 0; tree < forest->trees; tree++) {
            leaves left[VECTORS];
            uint32_t found[ROWS];
            memset(left, 0xff, sizeof left);
            for (int32_t node = forest->nodes[tree]; node < forest->nodes[tree + 1]; node++) {
                const floats *x = (const floats *)(block + (int64_t)forest->slot[node] * ROWS);
                for (int v = 0; v < VECTORS; v++) left[v] &= (leaves)(x[v] <= forest->threshold[node]) | forest->right[node];
            }
            memcpy(found, left, sizeof found);
            for (int64_t i = 0; i < ROWS; i++) total[i] += forest->values[32 * tree + __builtin_ctz(found[i])];
        }
        memcpy(sums + first, total, n * sizeof *sums);
    }
}
