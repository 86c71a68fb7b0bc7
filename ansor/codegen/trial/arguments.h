/* Buffers with guard bands, filled as the recipe says: transformed and packed ahead of time where the program wants that. */
#ifndef ANSOR_TRIAL_ARGUMENTS_H
#define ANSOR_TRIAL_ARGUMENTS_H

#include "fill.h"
#include "recipe.h"

#ifdef TRIAL_SMALL
enum { BAND = 64, ROOMY = 0 }; /* ROOMY: memory for faster code and for what is made ahead */
#else
enum { BAND = 4096, ROOMY = 1 };
#endif
#define AHEAD_BYTES (UINT64_C(32) << 20)
enum { UNWRITTEN_BYTE = 0xa5 };

typedef struct {
    const char *name;
    unsigned char *data;
    uint64_t size; /* bytes */
    uint64_t sum;  /* of the contents, after filling */
} guarded;

static guarded buffers[TRIAL_ARGUMENTS + 1]; /* the last is the workspace */
static void *pointers[TRIAL_ARGUMENTS];

static void set_bytes(unsigned char *data, int byte, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) data[i] = (unsigned char)byte;
}

static void copy_bytes(unsigned char *restrict to, const unsigned char *restrict from, uint64_t size) {
    for (uint64_t i = 0; i < size; ++i) to[i] = from[i];
}

/* Byte `place` of a band: as floats NaN or large, as integers large. Each buffer has other bands, so that what was read from one and written to another shows. */
static unsigned char guard_byte(const guarded *buffer, int place) {
    const uint32_t word = UINT32_C(0x7fda5a5a) ^ (uint32_t)((buffer - buffers) % 64 + 1) * UINT32_C(0x00010101);
    return (unsigned char)(word >> place % 4 * 8);
}

static void make_guarded(guarded *buffer, const char *name, uint64_t size) {
    buffer->name = name;
    buffer->size = size;
    buffer->data = system_room(size, BAND, name);
    if (!buffer->data) fail("memory", "no room for ", name, ", bytes: ", (int64_t)size);
    for (int j = 0; j < BAND; ++j) buffer->data[j - BAND] = buffer->data[size + (uint64_t)j] = guard_byte(buffer, j);
}

/* A sum that shows changed bytes, of `size` bytes in words; every word decides all bits. */
static uint64_t sum_of_bytes(const unsigned char *data, uint64_t size) {
    uint64_t sum = size;
    for (uint64_t i = 0; i < size / 8; ++i) {
        sum = (sum ^ number_raw(data, 8, i)) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    for (uint64_t i = size / 8 * 8; i < size; ++i) sum = (sum ^ data[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* What a fill needs at every element. `bytes`: of the buffer's elements; `moved`: inputs are changed a little, number `move` of such changes; `ahead`: all
 * elements before packing, of a transform that was made ahead, or NULL. */
typedef struct {
    const recipe_fill *fill;
    int bytes, moved;
    uint64_t move_key;
    const unsigned char *ahead;
} filling;

/* What a moved input is multiplied by. */
static double moved_by(uint64_t bits) { return 1 - fill_uniform(bits, 8) * asked.move_eps; }

static double filled_float(const filling *how, uint64_t index) {
    const recipe_fill *fill = how->fill;
    double value = fill->file ? number_float_at(fill->file, fill->bytes, index) : fill_float(fill_bits(fill->key, index), fill->bytes, fill->low, fill->high);
    if (how->moved) value *= moved_by(fill_bits(how->move_key, index));
    return value;
}

/* The bits of a logical element: of a float in the dtype of the buffer, of an integer with its sign, as it may become a part of a wider number. */
static uint64_t filled(const filling *how, uint64_t index) {
    const recipe_fill *fill = how->fill;
    if (fill->kind == 'f') return number_narrow(filled_float(how, index), how->bytes);
    const int above = 64 - 8 * fill->bytes;
    const uint64_t drawn = fill->file ? 0 : (uint64_t)fill_integer(fill_bits(fill->key, index), fill->first, fill->span);
    const uint64_t bits = (fill->file ? number_raw(fill->file, fill->bytes, index) : drawn) << above;
    return fill->kind == 'i' ? (uint64_t)((int64_t)bits >> above) : bits >> above;
}

/* Of a transform: the logical place of each inner element, and of each element behind it. */
static int64_t inner_places[TRIAL_INNER];

typedef union {
    double value;
    int64_t whole;
} inner_element;

static int64_t place_along(const trial_argument *argument, const int *dimensions, int count, int64_t number) {
    int64_t place = 0;
    for (int i = count - 1; i >= 0; --i) {
        const int64_t extent = argument->shape[dimensions[i]];
        int64_t stride = 1;
        for (int d = argument->rank - 1; d > dimensions[i]; --d) stride *= argument->shape[d];
        place += number % extent * stride;
        number /= extent;
    }
    return place;
}

static void prepare_transform(const trial_argument *argument) {
    const trial_transform *transform = argument->transform;
    for (int k = 0; transform && k < transform->inner; ++k) inner_places[k] = place_along(argument, transform->axes, transform->axis_count, k);
}

/* How many logical elements along a dimension are in one number. */
static int joined_along(const trial_joined *joined, int d) { return !joined ? 1 : d == joined->across ? joined->lanes : d == joined->along ? joined->words : 1; }

static uint64_t joined_number(const trial_argument *argument, const filling *how, uint64_t index) {
    const trial_joined *joined = argument->joined;
    const int width = joined->lanes * joined->bits;
    uint64_t place = 0, stride = 1, across = 0, along = 0, number = 0;
    for (int d = argument->rank - 1; d >= 0; --d) {
        const uint64_t count = (uint64_t)joined_along(joined, d), extent = (uint64_t)argument->shape[d] / count;
        if (d == joined->across) across = stride;
        if (d == joined->along) along = stride;
        place += index % extent * count * stride;
        index /= extent;
        stride *= (uint64_t)argument->shape[d];
    }
    for (int w = 0; w < joined->words; ++w) {
        uint64_t word = 0;
        for (int l = 0; l < joined->lanes; ++l) word += filled(how, place + (uint64_t)l * across + (uint64_t)w * along) << joined->bits * l;
        if (width < 64) word &= (UINT64_C(1) << width) - 1;
        number |= word << width * w;
    }
    return number;
}

/* The numbers that a chunk becomes. */
static int64_t numbers_of_chunk(const trial_combined *combined) { return (combined->chunk + combined->lanes - 1) / combined->lanes * combined->numbers; }

/* How long a dimension is before packing. */
static int64_t extent_before_packing(const trial_argument *argument, int d) {
    const trial_combined *combined = argument->combined;
    if (!combined) return argument->shape[d] / joined_along(argument->joined, d);
    return d == combined->across ? argument->shape[d] / combined->chunk * numbers_of_chunk(combined) : argument->shape[d];
}

static uint64_t combined_number(const trial_argument *argument, const filling *how, uint64_t index) {
    const trial_combined *combined = argument->combined;
    const uint64_t each = (uint64_t)numbers_of_chunk(combined), lanes = (uint64_t)combined->lanes, numbers = (uint64_t)combined->numbers;
    uint64_t place = 0, stride = 1, across = 1, first = 0, row = 0, number = 0;
    for (int d = argument->rank - 1; d >= 0; --d) {
        const uint64_t extent = (uint64_t)extent_before_packing(argument, d), at = index % extent;
        if (d == combined->across) {
            across = stride, row = at % numbers, first = at % each / numbers * lanes;
            place += at / each * (uint64_t)combined->chunk * stride;
        } else place += at * stride;
        index /= extent;
        stride *= (uint64_t)argument->shape[d];
    }
    for (uint64_t l = 0; l < lanes && first + l < (uint64_t)combined->chunk; ++l)
        if (combined->factors[row * lanes + l]) number += filled(how, place + (first + l) * across) * (uint64_t)combined->factors[row * lanes + l];
    return number;
}

/* The inner elements of a transform, from a logical place on; of integers those alone that a row of its matrix needs, if it is given. 1 if all are finite. */
static int gather(const filling *how, int inner, int64_t place, const double *row, inner_element *elements) {
    int finite = 1;
    for (int k = 0; k < inner; ++k) {
        const uint64_t index = (uint64_t)(place + inner_places[k]);
        if (how->fill->kind == 'f') elements[k].value = filled_float(how, index), finite = finite && number_finite(elements[k].value);
        else if (!row || number_bits(row[k])) elements[k].whole = (int64_t)filled(how, index);
    }
    return finite;
}

/* The bits of a transform's element: a row of its matrix times the inner elements that were gathered. Factors are looked at as bits: many boards and emulators
 * take long for doubles. */
static uint64_t row_times(const filling *how, const double *row, int inner, const inner_element *elements, int finite) {
    double sum = 0;
    int64_t whole = 0;
    if (how->fill->kind == 'f') {
        for (int k = 0; k < inner; ++k)
            if (number_bits(row[k]) || !finite) sum += row[k] * elements[k].value;
        return number_narrow(sum, how->bytes);
    }
    for (int k = 0; k < inner; ++k)
        if (number_bits(row[k])) whole += (int64_t)row[k] * elements[k].whole; /* factors are whole numbers, too */
    return (uint64_t)whole;
}

/* The bits of an element of the argument as it is before packing. */
static uint64_t transformed(const trial_argument *argument, const filling *how, uint64_t index, int64_t behind) {
    const trial_transform *transform = argument->transform;
    if (how->ahead) return number_raw(how->ahead, how->bytes, index);
    if (argument->joined) return joined_number(argument, how, index);
    if (argument->combined) return combined_number(argument, how, index);
    if (!transform) return filled(how, index);
    const int64_t place = place_along(argument, transform->rest, transform->rest_count, (int64_t)(index % (uint64_t)behind));
    inner_element elements[TRIAL_INNER];
    const double *row = transform->matrix + index / (uint64_t)behind * (uint64_t)transform->inner;
    const int finite = gather(how, transform->inner, place, row, elements);
    return row_times(how, row, transform->inner, elements, finite);
}

/* The shape before packing; returns the number of elements behind its first dimension. */
static int64_t shape_before_packing(const trial_argument *argument, int64_t *shape, int *rank) {
    const trial_transform *transform = argument->transform;
    *rank = transform ? transform->rest_count + 1 : argument->rank;
    int64_t behind = 1;
    for (int d = 0; d < *rank; ++d) {
        shape[d] = !transform ? extent_before_packing(argument, d) : d ? argument->shape[transform->rest[d - 1]] : transform->rows;
        if (d) behind *= shape[d];
    }
    return behind;
}

/* Where the loops of a pack stand: counters of all but the innermost, the coordinates they give, the coordinates' extents, and how far one step of the
 * innermost loop goes. */
typedef struct {
    const trial_pack *pack;
    int rank;
    int64_t counters[TRIAL_LOOPS], at[TRIAL_DIMENSIONS], shape[TRIAL_DIMENSIONS], step;
} packing;

/* Elements that lie one step of the innermost loop apart. Without a pack all of them are one run. */
typedef struct {
    uint64_t first, count;
    int64_t index, step;
    int partly; /* some are outside of the shape */
} fill_run;

static int64_t inner_stride(const trial_pack *pack, int d) { return pack->loops ? pack->strides[d * pack->loops + pack->loops - 1] : 0; }

static void begin_packing(packing *state) {
    const trial_pack *pack = state->pack;
    int64_t stride = 1;
    for (int d = state->rank - 1; d >= 0; --d) {
        state->at[d] = pack->starts ? pack->starts[d] : 0;
        state->step += inner_stride(pack, d) * stride;
        stride *= state->shape[d];
    }
}

static void pack_next_run(packing *state) {
    const trial_pack *pack = state->pack;
    for (int loop = pack->loops - 2; loop >= 0; --loop) {
        const int64_t back = state->counters[loop] + 1 < pack->extents[loop] ? 0 : pack->extents[loop];
        state->counters[loop] += 1 - back;
        for (int d = 0; d < state->rank; ++d) state->at[d] += (1 - back) * pack->strides[d * pack->loops + loop];
        if (!back) return;
    }
}

/* The index of the element so many steps of the innermost loop from the loops' place, -1 outside of the shape. */
static int64_t packed_index(const packing *state, int64_t steps) {
    int64_t index = 0;
    for (int d = 0; d < state->rank; ++d) {
        const int64_t at = state->at[d] + steps * inner_stride(state->pack, d);
        if (at < 0 || at >= state->shape[d]) return -1;
        index = index * state->shape[d] + at;
    }
    return index;
}

static fill_run packed_run(const packing *state, uint64_t first) {
    const uint64_t count = state->pack->loops ? (uint64_t)state->pack->extents[state->pack->loops - 1] : 1;
    const int64_t index = packed_index(state, 0);
    const fill_run run = {first, count, index, state->step, index < 0 || packed_index(state, (int64_t)count - 1) < 0};
    return run;
}

/* Floats of four bytes that are drawn, and go where they are: as floats, or as doubles that may be moved. */
static void fill_floats(unsigned char *data, const filling *how, const fill_run *run) {
    const fill_range range = fill_range_of(how->fill->low, how->fill->high);
    const uint64_t step = (uint64_t)run->step * FILL_STEP;
    uint64_t state = fill_state(how->fill->key, (uint64_t)run->index), move = fill_state(how->move_key, (uint64_t)run->index);
    const uint64_t end = run->first + run->count;
    const int narrow = how->bytes == 4, moved = how->moved;
    for (uint64_t i = run->first; i < end; ++i, state += step, move += step) {
        const number_float value = {fill_in_range(&range, fill_mixed(state))};
        if (narrow) ((uint32_t *)(void *)data)[i] = value.bits;
        else ((uint64_t *)(void *)data)[i] = number_bits(moved ? (double)value.value * moved_by(fill_mixed(move)) : (double)value.value);
    }
}

/* Whether `fill_floats` knows how. */
static int fills_floats(const filling *how) {
    return ROOMY && how->fill->kind == 'f' && how->fill->bytes == 4 && (how->bytes == 8 || (how->bytes == 4 && !how->moved));
}

/* Integers that are drawn, and go where they are. */
static void fill_integers(unsigned char *data, const filling *how, const fill_run *run) {
    const recipe_fill *fill = how->fill;
    const uint64_t step = (uint64_t)run->step * FILL_STEP;
    uint64_t state = fill_state(fill->key, (uint64_t)run->index);
    for (uint64_t i = 0; i < run->count; ++i, state += step)
        number_put(data, how->bytes, run->first + i, (uint64_t)fill_integer(fill_mixed(state), fill->first, fill->span));
}

/* Numbers that are made already. */
static void fill_copied(unsigned char *data, const filling *how, const fill_run *run) {
    for (uint64_t i = 0; i < run->count; ++i)
        number_put(data, how->bytes, run->first + i, number_raw(how->ahead, how->bytes, (uint64_t)(run->index + (int64_t)i * run->step)));
}

static void fill_elements(const trial_argument *argument, unsigned char *data, const filling *how, const packing *state, const fill_run *run, int64_t behind) {
    for (uint64_t i = 0; i < run->count; ++i) {
        const int64_t index = run->partly ? packed_index(state, (int64_t)i) : run->index + (int64_t)i * run->step;
        number_put(data, argument->bytes, run->first + i, index < 0 ? 0 : transformed(argument, how, (uint64_t)index, behind));
    }
}

/* Rooms for what is made ahead, at most AHEAD_BYTES each; how many were taken. */
static void *room_ahead(uint64_t size, const char *name, int *taken) {
    void *room = ROOMY && size <= AHEAD_BYTES ? system_room(size, BAND, name) : NULL;
    *taken += room != NULL;
    return room;
}

/* A transform's logical elements, drawn once, as each of them is part of many; `fill` itself where they are in a file, or where there is no room. */
static recipe_fill drawn_ahead(const trial_argument *argument, const recipe_fill *fill, int *taken) {
    recipe_fill drawn = *fill;
    if (fill->file || (fill->kind == 'f' && fill->bytes != 4)) return drawn;
    fill_run run = {0, 1, 0, 1, 0};
    for (int d = 0; d < argument->rank; ++d) run.count *= (uint64_t)argument->shape[d];
    unsigned char *data = room_ahead(run.count * (uint64_t)fill->bytes, argument->name, taken);
    const filling how = {fill, fill->bytes, 0, 0, NULL};
    if (data && fill->kind == 'f') fill_floats(data, &how, &run);
    else if (data) fill_integers(data, &how, &run);
    drawn.file = data;
    return drawn;
}

/* All elements of a transform, in order before packing; NULL where there is no room for them. */
static const unsigned char *transformed_ahead(const trial_argument *argument, const filling *how, int64_t behind, int *taken) {
    const trial_transform *transform = argument->transform;
    inner_element elements[TRIAL_INNER];
    unsigned char *data = room_ahead((uint64_t)(transform->rows * behind) * (uint64_t)how->bytes, argument->name, taken);
    for (int64_t b = 0; data && b < behind; ++b) {
        const int finite = gather(how, transform->inner, place_along(argument, transform->rest, transform->rest_count, b), NULL, elements);
        const double *row = transform->matrix;
        for (int64_t r = 0; r < transform->rows; ++r, row += transform->inner)
            number_put(data, how->bytes, (uint64_t)(r * behind + b), row_times(how, row, transform->inner, elements, finite));
    }
    return data;
}

static void fill_next_run(const trial_argument *argument, unsigned char *data, const filling *how, const packing *state, const fill_run *run, int64_t behind) {
    const int plain = !run->partly && !how->fill->file && !argument->transform && !argument->joined && !argument->combined;
    if (plain && fills_floats(how)) fill_floats(data, how, run);
    else if (plain && how->fill->kind != 'f') fill_integers(data, how, run);
    else if (how->ahead && !run->partly) fill_copied(data, how, run);
    else fill_elements(argument, data, how, state, run, behind);
}

static void fill_argument(int place, int64_t move) {
    const trial_argument *argument = &ansor_trial_manifest.arguments[place];
    unsigned char *data = buffers[place].data;
    if (!asked.fills[place].known) fail("load", "the recipe says nothing of ", argument->name, "", -1);
    if (asked.fills[place].stored) {
        copy_bytes(data, asked.fills[place].file, buffers[place].size);
        return;
    }
    int taken = 0;
    const recipe_fill fill = ROOMY && argument->transform ? drawn_ahead(argument, &asked.fills[place], &taken) : asked.fills[place];
    const uint64_t key = fill_bits(asked.move_key + (uint64_t)move, (uint64_t)place);
    filling how = {&fill, argument->bytes, move >= 0 && argument->kind == 'f', key, NULL};
    packing state = {argument->pack, 0, {0}, {0}, {0}, 0};
    const int64_t behind = shape_before_packing(argument, state.shape, &state.rank);
    fill_run run = {0, argument->size, 0, 1, 0};
    prepare_transform(argument);
    if (ROOMY && argument->transform) how.ahead = transformed_ahead(argument, &how, behind, &taken);
    if (state.pack) begin_packing(&state);
    for (; run.first < argument->size; run.first += run.count) {
        if (state.pack) run = packed_run(&state, run.first);
        fill_next_run(argument, data, &how, &state, &run, behind);
        if (state.pack) pack_next_run(&state);
    }
    while (taken--) system_leave_room();
}

static uint64_t filled_again; /* 1 for other values at each place of outputs and workspace, before a second call */

/* Outputs begin with what no right program leaves behind. */
static void fill_output(int place) {
    const trial_argument *argument = &ansor_trial_manifest.arguments[place];
    for (uint64_t i = 0; i < argument->size; ++i) {
        if (argument->kind == 'f') number_put(buffers[place].data, argument->bytes, i, number_unwritten(argument->bytes, i + filled_again));
        else set_bytes(buffers[place].data + i * (uint64_t)argument->bytes, (i + filled_again) % 2 ? UNWRITTEN_BYTE ^ 0xff : UNWRITTEN_BYTE, (uint64_t)argument->bytes);
    }
}

/* A workspace begins with what shows if it is read before it is written: words of NaN (or far below 0) and large ones in turn, then large ones and negative ones. */
static void fill_workspace(void) {
    static const unsigned char words[2][8] = {{0xda, 0xda, 0xda, 0xff, 0x5a, 0x5a, 0x5a, 0x5a}, {0x5a, 0x5a, 0x5a, 0x5a, 0xda, 0xda, 0xda, 0xda}};
    const guarded *workspace = &buffers[ansor_trial_manifest.count];
    for (uint64_t i = 0; i < workspace->size; ++i) workspace->data[i] = words[filled_again][i / 8 % 2 * 4 + i % 4];
}

/* Fills outputs and workspace anew before a second call. */
static void forget(void) {
    filled_again = 1;
    for (int i = 0; i < ansor_trial_manifest.count; ++i)
        if (ansor_trial_manifest.arguments[i].role == 'o') fill_output(i);
    fill_workspace();
}

/* All buffers have room before the first is filled: what is made ahead then takes none of theirs. */
static void make_buffers(void) {
    const trial_manifest *manifest = &ansor_trial_manifest;
    for (int i = 0; i < manifest->count; ++i) {
        const trial_argument *argument = &manifest->arguments[i];
        make_guarded(&buffers[i], argument->name, argument->size * (uint64_t)argument->bytes);
        pointers[i] = buffers[i].data;
    }
    make_guarded(&buffers[manifest->count], "workspace", manifest->workspace);
    for (int i = 0; i < manifest->count; ++i) {
        if (manifest->arguments[i].role == 'o') fill_output(i);
        else fill_argument(i, -1), buffers[i].sum = sum_of_bytes(buffers[i].data, buffers[i].size);
    }
    fill_workspace();
}

/* Fails where a guard band or an input was changed. */
static void check_trespass(void) {
    const trial_manifest *manifest = &ansor_trial_manifest;
    const char *elsewhere = system_trespass();
    if (elsewhere) fail("out_of_bounds", "wrote to ", elsewhere, "", -1);
    for (int i = 0; i <= manifest->count; ++i) {
        const guarded *buffer = &buffers[i];
        for (int j = 0; j < BAND; ++j)
            if (buffer->data[buffer->size + (uint64_t)j] != guard_byte(buffer, j))
                fail("out_of_bounds", "wrote past the end of ", buffer->name, ", first at byte ", (int64_t)(buffer->size + (uint64_t)j));
        for (int j = 0; j < BAND; ++j)
            if (buffer->data[j - BAND] != guard_byte(buffer, j)) fail("out_of_bounds", "wrote before the start of ", buffer->name, ", bytes before it: ", BAND - j);
    }
    for (int i = 0; i < manifest->count; ++i)
        if (manifest->arguments[i].role != 'o' && sum_of_bytes(buffers[i].data, buffers[i].size) != buffers[i].sum)
            fail("wrong_answer", "input ", buffers[i].name, " was changed", -1);
}

#endif
