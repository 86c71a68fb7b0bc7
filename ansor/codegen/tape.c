/* Runs a recorded tape (ansor/ir/tape.py) over rows of genes.

   ansor_tape_prepare drops what no output needs and gives every value a register; ansor_tape_run works on blocks of rows, one operation after the other, so
   that the registers, a vector of one block's values each, stay in the first caches. No state, no threads. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 64, LANES = 8 };

enum {
    CONSTANT, TABLE, ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, CEIL_DIVIDE, REMAINDER, MINIMUM, MAXIMUM, LESS, LESS_EQUAL, EQUAL, BOTH, EITHER,
    NOT, FLOOR, CEIL, MAGNITUDE, LOG2, LOG, LOG2_OF_ONE_MORE, EXCESS, POWER_OF_TWO, CHOOSE, MULTIPLY_ADD,
    STORE_FLOAT, STORE_DOUBLE, STORE_FLAG
};

/* Which operands are constants rather than registers, above the operation in the first word of an instruction. */
enum { SECOND = 64, FIRST = 128, THEN = 64, OTHERWISE = 128 };

struct instruction {
    int32_t op, to, a, b, c;
};

struct output {
    int32_t node, matrix, column, op;
};

struct tape {
    const struct instruction *code;
    int64_t length;
    const double *constants, *tables;
    int64_t registers, matrices;
    const void *templates[4];
    int64_t row_bytes[4];
};

static int operands(const int32_t *node) {
    if (node[0] <= TABLE) return 0;
    if (node[0] >= CHOOSE) return 3;
    return node[0] >= NOT && node[0] <= LOG2_OF_ONE_MORE ? 1 : 2;
}

/* Instructions for the outputs, which are in the order of their nodes; `code` has room for all nodes and outputs. Returns their number, -1 without memory. */
int64_t ansor_tape_prepare(const int32_t *nodes, int64_t count, const struct output *outputs, int64_t wanted, struct instruction *code, int64_t *registers) {
    int32_t *last = malloc(count * sizeof *last), *place = malloc(count * sizeof *place), *unused = malloc(count * sizeof *unused);
    int64_t length = 0, top = 0, next = 0;
    *registers = 0;
    if (!last || !place || !unused) {
        free(last), free(place), free(unused);
        return -1;
    }
    for (int64_t k = 0; k < count; k++) last[k] = -1;
    for (int64_t k = 0; k < wanted; k++) last[outputs[k].node] = outputs[k].node;
    for (int64_t k = count - 1; k >= 0; k--) {
        if (last[k] < 0) continue;
        for (int j = 1; j <= operands(nodes + 4 * k); j++) {
            const int32_t from = nodes[4 * k + j];
            if (last[from] < 0 || last[from] == from) last[from] = (int32_t)k; /* the first met from the end is the last use */
        }
    }
    for (int64_t k = 0; k < count; k++) {
        const int32_t *node = nodes + 4 * k;
        if (last[k] < 0) continue;
        if (node[0] == CONSTANT) {
            place[k] = node[1];
            continue;
        }
        /* No operand's register is free yet: an instruction never writes what it reads. */
        place[k] = top ? unused[--top] : (int32_t)(*registers)++;
        struct instruction one = {node[0], place[k], node[1], node[2], node[3]};
        int32_t *const field[3] = {&one.a, &one.b, &one.c};
        const int uses = operands(node);
        for (int j = 0; j < uses; j++) {
            const int32_t from = *field[j];
            if (nodes[4 * from] == CONSTANT) one.op |= uses == 3 ? (j == 1 ? THEN : OTHERWISE) : (j == 1 ? SECOND : FIRST);
            *field[j] = place[from];
        }
        code[length++] = one;
        for (; next < wanted && outputs[next].node == k; next++) {
            code[length++] = (struct instruction){outputs[next].op, outputs[next].matrix, place[k], outputs[next].column, 0};
        }
        for (int j = 1; j <= uses; j++) {
            const int32_t from = node[j];
            if (nodes[4 * from] != CONSTANT && last[from] == k) {
                unused[top++] = place[from];
                last[from] = -1; /* an operand that stands twice is freed once */
            }
        }
        if (last[k] == k) unused[top++] = place[k];
    }
    free(last), free(place), free(unused);
    return length;
}

/* Of a positive number that is not denormal, up to a rounding error: e + 2 / ln 2 * artanh((m - 1) / (m + 1)) of x = m * 2^e with m around 1. */
static inline double binary_logarithm(double x) {
    uint64_t bits, shifted;
    double mantissa, exponent;
    memcpy(&bits, &x, sizeof bits);
    shifted = (bits >> 52) | 0x4330000000000000u; /* 2^52 + the biased exponent */
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent -= 4503599627370496.0 + 1023.0;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    memcpy(&mantissa, &bits, sizeof mantissa);
    const double large = mantissa > 1.4142135623730951 ? 1.0 : 0.0;
    mantissa = large ? mantissa * 0.5 : mantissa;
    const double s = (mantissa - 1.0) / (mantissa + 1.0), z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19, p = p * z + 1.0 / 17, p = p * z + 1.0 / 15, p = p * z + 1.0 / 13, p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9, p = p * z + 1.0 / 7, p = p * z + 1.0 / 5, p = p * z + 1.0 / 3, p = p * z + 1.0;
    return exponent + large + 2.8853900817779268 * s * p;
}

static inline int64_t lowest_bit(int64_t x) { return x & -x; }

/* Each operation as a loop over whole vectors that reads registers, or a constant in the place of one of them. */
#define OPERANDS double *restrict d, const double *restrict a, const double *restrict b, const double *restrict c, int64_t vectors
#define EACH _Pragma("clang loop vectorize_width(8) interleave_count(1)") for (int64_t i = 0; i < LANES * vectors; i++)

#define UNARY(NAME, RESULT) \
    static void NAME(OPERANDS) { EACH { const double x = a[i]; d[i] = (RESULT); } }

#define BINARY(NAME, RESULT)                                                                                            \
    static void NAME(OPERANDS) { EACH { const double x = a[i], y = b[i]; d[i] = (RESULT); } }                           \
    static void NAME##_second(OPERANDS) { const double y = *b; EACH { const double x = a[i]; d[i] = (RESULT); } }       \
    static void NAME##_first(OPERANDS) { const double x = *a; EACH { const double y = b[i]; d[i] = (RESULT); } }

BINARY(add, x + y)
BINARY(subtract, x - y)
BINARY(multiply, x * y)
BINARY(divide, x / y)
/* Divided by 0 is 0, as NumPy has it for integers. The quotient of integers below 2^53 is never rounded up to an integer it is less than. */
BINARY(floor_divide, floor(x / (y == 0 ? INFINITY : y)))
BINARY(ceil_divide, ceil(x / (y == 0 ? INFINITY : y)))
BINARY(remain, y == 0 ? 0.0 : x - floor(x / y) * y)
BINARY(minimum, x < y ? x : y)
BINARY(maximum, x > y ? x : y)
BINARY(less, x < y ? 1.0 : 0.0)
BINARY(less_equal, x <= y ? 1.0 : 0.0)
BINARY(equal, x == y ? 1.0 : 0.0)
BINARY(excess, x > y ? x - y : 0.0)
BINARY(power_of_two, (double)lowest_bit((int64_t)x | (int64_t)y))
UNARY(not, 1.0 - x)
UNARY(floored, floor(x))
UNARY(ceiled, ceil(x))
UNARY(magnitude, fabs(x))
UNARY(binary_log, binary_logarithm(x))
UNARY(binary_log_of_one_more, binary_logarithm(x + 1.0))
UNARY(natural_log, 0.6931471805599453 * binary_logarithm(x))

static void choose(OPERANDS) { EACH d[i] = a[i] != 0 ? b[i] : c[i]; }
static void choose_then(OPERANDS) { const double then = *b; EACH d[i] = a[i] != 0 ? then : c[i]; }
static void choose_otherwise(OPERANDS) { const double otherwise = *c; EACH d[i] = a[i] != 0 ? b[i] : otherwise; }
static void choose_either(OPERANDS) { const double then = *b, otherwise = *c; EACH d[i] = a[i] != 0 ? then : otherwise; }
static void multiply_add(OPERANDS) { EACH d[i] = a[i] * b[i] + c[i]; }
static void multiply_add_constant(OPERANDS) { const double y = *c; EACH d[i] = a[i] * b[i] + y; }

#define FORMS(OP, NAME) [OP] = NAME, [OP | SECOND] = NAME##_second, [OP | FIRST] = NAME##_first

static void (*const operations[256])(OPERANDS) = {
    FORMS(ADD, add), FORMS(SUBTRACT, subtract), FORMS(MULTIPLY, multiply), FORMS(DIVIDE, divide), FORMS(FLOOR_DIVIDE, floor_divide),
    FORMS(CEIL_DIVIDE, ceil_divide), FORMS(REMAINDER, remain), FORMS(MINIMUM, minimum), FORMS(MAXIMUM, maximum), FORMS(LESS, less),
    FORMS(LESS_EQUAL, less_equal), FORMS(EQUAL, equal), FORMS(BOTH, minimum), FORMS(EITHER, maximum), FORMS(EXCESS, excess),
    FORMS(POWER_OF_TWO, power_of_two),
    [NOT] = not, [FLOOR] = floored, [CEIL] = ceiled, [MAGNITUDE] = magnitude, [LOG2] = binary_log, [LOG] = natural_log, [LOG2_OF_ONE_MORE] = binary_log_of_one_more,
    [CHOOSE] = choose, [CHOOSE | THEN] = choose_then, [CHOOSE | OTHERWISE] = choose_otherwise, [CHOOSE | THEN | OTHERWISE] = choose_either,
    [MULTIPLY_ADD] = multiply_add, [MULTIPLY_ADD | OTHERWISE] = multiply_add_constant,
};

#define REGISTER(k) (registers + (int64_t)(k) * whole)

/* All rows [rows, choices]; scratch: room for the registers, BLOCK doubles each. Returns 0 where a gene is not in its table. */
int ansor_tape_run(const struct tape *tape, const int64_t *genes, int64_t choices, int64_t rows, double *scratch, void *const *matrices) {
    double *const registers = (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    for (int64_t first = 0; first < rows; first += BLOCK) {
        const int64_t n = rows - first < BLOCK ? rows - first : BLOCK;
        const int64_t vectors = (n + LANES - 1) / LANES, whole = vectors * LANES;
        for (int64_t m = 0; m < tape->matrices; m++)
            for (int64_t i = first; i < first + n; i++) memcpy((char *)matrices[m] + i * tape->row_bytes[m], tape->templates[m], tape->row_bytes[m]);
        for (const struct instruction *at = tape->code, *end = at + tape->length; at < end; at++) {
            const struct instruction one = *at;
            double *const d = REGISTER(one.to), *const a = REGISTER(one.a);
            switch (one.op) {
            case TABLE: {
                const int64_t *gene = genes + first * choices + one.a;
                for (int64_t i = 0; i < whole; i++) {
                    const int64_t value = gene[(i < n ? i : n - 1) * choices];
                    if (value < 0 || value >= one.c) return 0;
                    d[i] = tape->tables[one.b + value];
                }
                break;
            }
            case STORE_FLOAT: {
                const int64_t width = tape->row_bytes[one.to] / (int64_t)sizeof(float);
                float *to = (float *)matrices[one.to] + first * width + one.b;
                for (int64_t i = 0; i < n; i++) to[i * width] = (float)a[i];
                break;
            }
            case STORE_DOUBLE: {
                const int64_t width = tape->row_bytes[one.to] / (int64_t)sizeof(double);
                double *to = (double *)matrices[one.to] + first * width + one.b;
                for (int64_t i = 0; i < n; i++) to[i * width] = a[i];
                break;
            }
            case STORE_FLAG: {
                uint8_t *to = (uint8_t *)matrices[one.to] + first * tape->row_bytes[one.to] + one.b;
                for (int64_t i = 0; i < n; i++) to[i * tape->row_bytes[one.to]] = a[i] != 0;
                break;
            }
            default: {
                const double *const constants = tape->constants;
                const int three = (one.op & 63) >= CHOOSE;
                operations[one.op](
                    d,
                    !three && one.op & FIRST ? constants + one.a : a,
                    one.op & SECOND ? constants + one.b : REGISTER(one.b),
                    three && one.op & OTHERWISE ? constants + one.c : REGISTER(one.c),
                    vectors
                );
            }
            }
        }
    }
    return 1;
}
