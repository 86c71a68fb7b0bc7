/* Distances between points, each in the same order of sums whatever points stand beside it.

   One of the two sets is packed, so that its points are the lanes of vectors; a few points of the other one share every vector that is read. */

#include <math.h>
#include <stdint.h>

enum { LANES = 16, POINTS = 4 };

typedef float floats __attribute__((vector_size(4 * LANES)));

/* Euclidean distances [count, LANES * groups] of `points` [count, width] from those in `packed` [groups, width, LANES]. */
void ansor_distances(const float *points, int64_t count, const floats *packed, int64_t groups, int64_t width, double *distances) {
    for (int64_t group = 0; group < groups; group++) {
        const floats *other = packed + group * width;
        for (int64_t begin = 0; begin < count; begin += POINTS) {
            floats sum[POINTS] = {{0}};
            const float *point[POINTS];
            for (int p = 0; p < POINTS; p++) point[p] = points + (begin + p < count ? begin + p : count - 1) * width;
            for (int64_t k = 0; k < width; k++)
                for (int p = 0; p < POINTS; p++) {
                    const floats apart = other[k] - point[p][k];
                    sum[p] += apart * apart;
                }
            for (int p = 0; p < POINTS && begin + p < count; p++)
                for (int i = 0; i < LANES; i++) distances[((begin + p) * groups + group) * LANES + i] = sqrt(sum[p][i]);
        }
    }
}
