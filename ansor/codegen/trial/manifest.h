/* What the trial program knows of the program that it is linked with. The manifest's text repeats this file, so that it compiles alone. */
#ifndef ANSOR_TRIAL_MANIFEST_H
#define ANSOR_TRIAL_MANIFEST_H

typedef void (*trial_body)(void *ctx, long begin, long end);
typedef void (*trial_parallel_for)(void *pool, trial_body body, void *ctx, long n);
typedef void (*trial_entry)(void *const *args, unsigned char *workspace, trial_parallel_for parallel_for, void *pool);

#ifdef TRIAL_SMALL /* for boards with little memory */
enum { TRIAL_LOOPS = 32, TRIAL_DIMENSIONS = 16, TRIAL_INNER = 64, TRIAL_ARGUMENTS = 16 };
#else
enum { TRIAL_LOOPS = 32, TRIAL_DIMENSIONS = 16, TRIAL_INNER = 1024, TRIAL_ARGUMENTS = 256 };
#endif

/* A physical order: `extents` of the loops, `strides[dimension * loops + loop]`, `starts[dimension]`. */
typedef struct {
    int loops;
    const long long *extents, *strides, *starts;
} trial_pack;

/* matrix[rows][inner] applied to the dimensions `axes`, the others follow in the order of `rest`. */
typedef struct {
    int rows, inner, axis_count, rest_count;
    const int *axes, *rest;
    const double *matrix;
} trial_transform;

/* `lanes` neighbours along `across` added up, each `bits` higher; `words` of these along `along` side by side in one number. */
typedef struct {
    int across, lanes, bits, along, words;
} trial_joined;

/* Groups of `lanes` neighbours along `across` as `numbers` numbers each, factors[numbers][lanes] times the group; they begin anew every `chunk` elements. */
typedef struct {
    int across, lanes, numbers, chunk;
    const long long *factors;
} trial_combined;

/* A buffer. `name` is escaped as in JSON; kind is f, i, u or b; role is i(nput), c(onstant) or o(utput); `size` counts elements of the buffer. */
typedef struct {
    const char *name;
    char role, kind;
    int bytes, rank;
    const long long *shape;
    unsigned long long size;
    const trial_pack *pack;
    const trial_transform *transform;
    const trial_joined *joined;
    const trial_combined *combined;
} trial_argument;

typedef struct {
    trial_entry entry;
    int count, threads;
    unsigned long long workspace;
    const trial_argument *arguments;
} trial_manifest;

#ifdef TRIAL_SELECTED /* several candidates in one image: the one that was chosen */
extern const trial_manifest *ansor_trial_selected;
#define ansor_trial_manifest (*ansor_trial_selected)
#else
extern const trial_manifest ansor_trial_manifest;
#endif

#endif
