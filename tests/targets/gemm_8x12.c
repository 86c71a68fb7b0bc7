/* A product of 256 x 256 matrices as one writes it by hand for NEON: both operands packed, 8 x 12 results in 24 registers. */
#include <arm_neon.h>

enum { N = 256, ROWS = 8, COLUMNS = 12, PANELS = (N + COLUMNS - 1) / COLUMNS };

static void pack_rows(const float *restrict a, float *restrict packed) {
    for (int i = 0; i < N; i += ROWS, packed += ROWS * N)
        for (int k = 0; k < N; k += 4)
            for (int half = 0; half < ROWS; half += 4) {
                const float *from = a + (i + half) * N + k;
                const float32x4_t r0 = vld1q_f32(from), r1 = vld1q_f32(from + N), r2 = vld1q_f32(from + 2 * N), r3 = vld1q_f32(from + 3 * N);
                const float32x4_t x0 = vtrn1q_f32(r0, r1), x1 = vtrn2q_f32(r0, r1), x2 = vtrn1q_f32(r2, r3), x3 = vtrn2q_f32(r2, r3);
                const float64x2_t y0 = vreinterpretq_f64_f32(x0), y1 = vreinterpretq_f64_f32(x1), y2 = vreinterpretq_f64_f32(x2), y3 = vreinterpretq_f64_f32(x3);
                vst1q_f32(packed + k * ROWS + half, vreinterpretq_f32_f64(vtrn1q_f64(y0, y2)));
                vst1q_f32(packed + (k + 1) * ROWS + half, vreinterpretq_f32_f64(vtrn1q_f64(y1, y3)));
                vst1q_f32(packed + (k + 2) * ROWS + half, vreinterpretq_f32_f64(vtrn2q_f64(y0, y2)));
                vst1q_f32(packed + (k + 3) * ROWS + half, vreinterpretq_f32_f64(vtrn2q_f64(y1, y3)));
            }
}

static void pack_columns(const float *restrict b, float *restrict packed) {
    for (int j = 0; j < N; j += COLUMNS)
        for (int k = 0; k < N; ++k, packed += COLUMNS)
            for (int part = 0; part < COLUMNS; part += 4)
                vst1q_f32(packed + part, j + part < N ? vld1q_f32(b + k * N + j + part) : vdupq_n_f32(0));
}

#define ROW(r, part, lane)                                      \
    s[r][0] = vfmaq_laneq_f32(s[r][0], b0, part, lane);         \
    s[r][1] = vfmaq_laneq_f32(s[r][1], b1, part, lane);         \
    s[r][2] = vfmaq_laneq_f32(s[r][2], b2, part, lane)

static void block(const float *restrict a, const float *restrict b, float *restrict c, int columns) {
    float32x4_t s[ROWS][3];
    for (int r = 0; r < ROWS; ++r) s[r][0] = s[r][1] = s[r][2] = vdupq_n_f32(0);
#pragma clang loop unroll_count(4)
    for (int k = 0; k < N; ++k, a += ROWS, b += COLUMNS) {
        const float32x4_t a0 = vld1q_f32(a), a1 = vld1q_f32(a + 4), b0 = vld1q_f32(b), b1 = vld1q_f32(b + 4), b2 = vld1q_f32(b + 8);
        ROW(0, a0, 0); ROW(1, a0, 1); ROW(2, a0, 2); ROW(3, a0, 3);
        ROW(4, a1, 0); ROW(5, a1, 1); ROW(6, a1, 2); ROW(7, a1, 3);
    }
    for (int r = 0; r < ROWS; ++r)
        for (int part = 0; part < 3; ++part)
            if (4 * part < columns) vst1q_f32(c + r * N + 4 * part, s[r][part]);
}

void gemm_8x12(void *const *args, unsigned char *workspace, void *parallel_for, void *pool) {
    float *rows = (float *)workspace, *columns = rows + N * N, *c = args[2];
    pack_rows(args[0], rows);
    pack_columns(args[1], columns);
    for (int j = 0; j < PANELS; ++j)
        for (int i = 0; i < N; i += ROWS) {
            const int left = N - j * COLUMNS;
            block(rows + i * N, columns + j * COLUMNS * N, c + i * N + j * COLUMNS, left < COLUMNS ? left : COLUMNS);
        }
    (void)parallel_for, (void)pool;
}
