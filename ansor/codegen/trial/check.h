/* Every element of an output against the reference's: the rules of `ansor.measure.verify`, in the same arithmetic and order. */
#ifndef ANSOR_TRIAL_CHECK_H
#define ANSOR_TRIAL_CHECK_H

#include "arguments.h"

#define NOTHING 1e-10 /* of the inputs: what double precision leaves of a zero */
#define FARTHER 3.0 /* times what an element was seen to move beyond roundings of its output: how far it may move */

/* An output of the reference: doubles for floats, otherwise as they are. `moved`: of floats, the farthest that each element moved. */
typedef struct {
    const unsigned char *data;
    const float *moved;
    uint64_t count;
    int kind, bytes;
    double sensitivity;
} kept_output;

typedef struct {
    uint64_t wrong, unwritten, first, worst_at;
    double worst, allowed; /* worst: as a share of what is allowed; 0 where nothing was compared. allowed: of the first wrong element, else of all */
} checked;

/* The scale, or that of the inputs where the reference is nothing but rounding noise. */
static double meant_scale(double scale, double input_scale) { return scale > NOTHING * input_scale ? scale : input_scale < 1.0 ? input_scale : 1.0; }

static double allowed_difference(const recipe_check *rules, double scale, double sensitivity) {
    return rules->stated * (rules->factor * (rules->eps * scale + sensitivity) + rules->tiny);
}

/* Of one element: it may have moved farther than the others. */
static double sensitivity_of_element(const recipe_check *rules, double scale, double usual, double moved) {
    const double beyond = FARTHER * (moved - rules->eps * scale), farther = moved > usual ? moved : usual;
    return beyond > farther ? beyond : farther;
}

/* What an element may be off by: its own moves add up to a quarter of the scale at most, or twice the way that it moved. */
static double allowed_of_element(const recipe_check *rules, double scale, double usual, double moved) {
    const double least = allowed_difference(rules, scale, usual);
    const double own = allowed_difference(rules, scale, sensitivity_of_element(rules, scale, usual, moved));
    const double most = rules->stated * (scale / 4 > 2 * moved ? scale / 4 : 2 * moved), ended = own < most ? own : most;
    return ended > least ? ended : least;
}

static void note_share(checked *result, double away, double allowed, uint64_t index) {
    const double share = away / allowed;
    if (share > result->worst) result->worst = share, result->worst_at = index;
}

/* The usual case: everything is finite and close. 0 may mean anything. */
static int all_close(const recipe_check *rules, const trial_argument *argument, const void *found, const kept_output *kept, double input_scale, checked *result) {
    const double *expected = (const double *)kept->data;
    double most = 0, least = 0;
    for (uint64_t i = 0; i < kept->count; ++i) {
        if (number_nan(expected[i])) return 0;
        if (i == 0 || expected[i] > most) most = expected[i];
        if (i == 0 || expected[i] < least) least = expected[i];
    }
    const double scale = most > -least ? most : -least;
    if (!(scale < number_greatest(argument->bytes))) return 0;
    result->allowed = allowed_difference(rules, meant_scale(scale, input_scale), kept->sensitivity);
    for (uint64_t i = 0; i < kept->count; ++i) {
        const double away = number_float_at(found, argument->bytes, i) - expected[i];
        if (!(away <= result->allowed && away >= -result->allowed)) return 0;
        note_share(result, number_magnitude(away), result->allowed, i);
    }
    return 1;
}

static double largest_finite(const trial_argument *argument, const kept_output *kept) {
    const double *expected = (const double *)kept->data;
    double largest = 0;
    for (uint64_t i = 0; i < kept->count; ++i) {
        const double rounded = number_rounded(expected[i], argument->bytes);
        if (number_finite(rounded) && number_magnitude(rounded) > largest) largest = number_magnitude(rounded);
    }
    return largest;
}

/* Whether one element is right. What overflowed is near the greatest number of its dtype. */
static int right_float(double found, double expected, double allowed, int bytes, checked *result, uint64_t index) {
    const double greatest = number_greatest(bytes);
    const double clipped = found > greatest ? greatest : found < -greatest ? -greatest : found;
    const double away = number_magnitude(clipped - expected), rounded = number_rounded(expected, bytes);
    const int close = away <= allowed;
    if (number_finite(rounded)) {
        note_share(result, away, allowed, index);
        return close;
    }
    return number_nan(expected) || found == rounded || (number_finite(expected) && close);
}

static checked check_floats(const recipe_check *rules, const trial_argument *argument, const void *found, const kept_output *kept, double input_scale) {
    checked result = {0, 0, 0, 0, 0, 0};
    const double *expected = (const double *)kept->data;
    if (all_close(rules, argument, found, kept, input_scale, &result)) return result;
    result = (checked){0, 0, 0, 0, 0, 0};
    const double scale = meant_scale(largest_finite(argument, kept), input_scale);
    result.allowed = allowed_difference(rules, scale, kept->sensitivity);
    uint64_t first_unwritten = 0;
    for (uint64_t i = 0; i < kept->count; ++i) {
        const double value = number_float_at(found, argument->bytes, i);
        const double allowed = allowed_of_element(rules, scale, kept->sensitivity, (double)kept->moved[i]);
        const int right = right_float(value, expected[i], allowed, argument->bytes, &result, i);
        const int filled = number_raw(found, argument->bytes, i) == number_unwritten(argument->bytes, i + filled_again);
        if (filled && (!right || number_nan(expected[i])) && !result.unwritten++) first_unwritten = i;
        if (!right && !result.wrong++) result.first = i, result.allowed = allowed;
    }
    if (result.unwritten) result.first = first_unwritten;
    return result;
}

static checked check_integers(const trial_argument *argument, const void *found, const kept_output *kept) {
    checked result = {0, 0, 0, 0, 0, 0};
    for (uint64_t i = 0; i < kept->count; ++i) {
        const uint64_t is = number_raw(found, argument->bytes, i), be = number_raw(kept->data, kept->bytes, i);
        const int same = argument->kind == 'b' ? is == (be != 0) : is == be;
        if (!same && !result.wrong++) result.first = i;
    }
    return result;
}

static checked check_output(const recipe_check *rules, const kept_output *kept, double input_scale) {
    const trial_argument *argument = &ansor_trial_manifest.arguments[rules->argument];
    const void *found = buffers[rules->argument].data;
    if (argument->size != kept->count || argument->kind != kept->kind || (kept->kind != 'f' && kept->bytes != argument->bytes))
        fail("load", "the reference that was kept is not one of output ", argument->name, "", -1);
    return argument->kind == 'f' ? check_floats(rules, argument, found, kept, input_scale) : check_integers(argument, found, kept);
}

/* An element, for people: floats as bits of a double, integers as they are. */
static void say_element(const char *name, int kind, int bytes, const void *data, uint64_t index) {
    const uint64_t bits = number_raw(data, bytes, index);
    const int away = 64 - 8 * bytes;
    if (kind == 'f') say_double_field(name, number_widened(bits, bytes));
    else say_field(name, kind == 'i' ? (int64_t)(bits << away) >> away : (int64_t)bits);
}

static void say_checked(const recipe_check *rules, const kept_output *kept, const checked *result) {
    const trial_argument *argument = &ansor_trial_manifest.arguments[rules->argument];
    const uint64_t at = result->wrong || result->unwritten ? result->first : result->worst_at;
    say("{");
    say_field("argument", rules->argument), say(", ");
    say_field("size", (int64_t)kept->count), say(", ");
    say_field("wrong", (int64_t)result->wrong), say(", ");
    say_field("unwritten", (int64_t)result->unwritten), say(", ");
    say_double_field("worst", result->worst), say(", ");
    say_double_field("allowed", result->allowed), say(", ");
    say_field("at", (int64_t)at);
    if (kept->count) {
        say(", "), say_element("found", argument->kind, argument->bytes, buffers[rules->argument].data, at);
        say(", "), say_element("expected", kept->kind, kept->bytes, kept->data, at);
    }
    say("}");
}

#endif
