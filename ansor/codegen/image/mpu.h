/* The memory protection of Cortex-M cores: the guard below the stack, and where candidates may write. */
#ifndef ANSOR_MPU_H
#define ANSOR_MPU_H

#include "bare.h"

#define MPU_CTRL 0xe000ed94u
#define MPU_RBAR 0xe000ed9cu
#define MPU_RASR 0xe000eda0u /* ARMv7-M */
#define MPU_RNR 0xe000ed98u
#define MPU_RLAR 0xe000eda0u /* ARMv8-M */
#define MPU_MAIR0 0xe000edc0u

#if defined(TRIAL_APART) && __ARM_ARCH >= 8
/* Regions of 32 bytes and more, which may not overlap. The trial program's own memory cannot be read alone, so all of it may be written, and is summed up. */
static void set_mpu(uint32_t number, uintptr_t start, uintptr_t end, uint32_t rights) {
    set_register(MPU_RNR, number);
    set_register(MPU_RBAR, start | rights << 1);
    set_register(MPU_RLAR, ((end - 1) & ~31u) | 1);
}

uintptr_t allow_writes(uintptr_t start, uintptr_t end) {
    enum { PAGE = 1024, READ_AND_WRITE = 1, READ = 3 }; /* simulators are slow where a page is not of one kind */
    (void)start;
    const uintptr_t data = BOARD_CODE_IS_APART ? BOARD_DATA_START : (uintptr_t)ansor_code_end;
    set_register(MPU_MAIR0, 0xff); /* plain memory, kept in caches */
    set_mpu(0, BOARD_CODE_START, BOARD_CODE_IS_APART ? BOARD_CODE_START + BOARD_CODE_BYTES : data, READ);
    const uintptr_t last = (end + PAGE - 1) & -PAGE;
    set_mpu(1, data, last < (uintptr_t)ansor_stack_low ? last : (uintptr_t)ansor_stack_low, READ_AND_WRITE); /* two of them on one address are a fault */
    set_mpu(2, (uintptr_t)ansor_stack_low, (uintptr_t)ansor_stack_top, READ_AND_WRITE);
    return last;
}
#elif defined(TRIAL_APART)
enum { READ_AND_WRITE = 3, READ = 2 };

/* A region of a power of two, from a multiple of that on, without those of its eighths that are named. Attributes as addresses have them by themselves. */
static void set_mpu(uint32_t number, uintptr_t start, uintptr_t size, uint32_t without, uint32_t rights) {
    const uint32_t plain = start < 0x20000000u ? 1 << 17 : 1 << 19 | 3 << 16;
    set_register(MPU_RBAR, start | 1 << 4 | number);
    set_register(MPU_RASR, rights << 24 | plain | without << 8 | (uint32_t)(30 - __builtin_clz(size)) << 1 | 1);
}

static uint32_t eighths_outside(uintptr_t window, uintptr_t size, uintptr_t start, uintptr_t end) {
    uint32_t outside = 0;
    for (uint32_t i = 0; i < 8; ++i) {
        const uintptr_t from = window + i * (size / 8);
        if (from + size / 8 <= start || from >= end) outside |= 1u << i;
    }
    return outside;
}

/* Two regions side by side, of whose eighths those that touch start to end are meant. Where the last of them ends. */
static uintptr_t set_windows(uint32_t number, uintptr_t start, uintptr_t end, uint32_t rights) {
    uintptr_t size = 8 << 10; /* eighths are whole pages of simulators, which are slow where a page is not of one kind */
    while ((uint64_t)(start & -size) + 2 * (uint64_t)size < end) size *= 2;
    const uintptr_t window = start & -size;
    set_mpu(number, window, size, eighths_outside(window, size, start, end), rights);
    set_mpu(number + 1, window + size, size, eighths_outside(window + size, size, start, end), rights);
    return (end + size / 8 - 1) & -(size / 8);
}

static void set_whole(uint32_t number, uintptr_t start, uintptr_t bytes, uint32_t rights) {
    uintptr_t size = 8 << 10;
    while ((uint64_t)(start & -size) + size < (uint64_t)start + bytes) size *= 2;
    set_mpu(number, start & -size, size, 0, rights);
}

/* Regions with higher numbers decide: all memory, then buffers, then the stack, then the guard. */
uintptr_t allow_writes(uintptr_t start, uintptr_t end) {
    set_whole(0, BOARD_DATA_START, BOARD_DATA_BYTES, READ);
    set_whole(1, BOARD_CODE_START, BOARD_CODE_BYTES, READ);
    const uintptr_t last = set_windows(2, start, end, READ_AND_WRITE);
    set_windows(4, (uintptr_t)ansor_stack_low, (uintptr_t)ansor_stack_top, READ_AND_WRITE);
    __asm__ volatile("dsb\n isb");
    return last;
}
#endif

/* Memory below the stack that faults. */
static void guard_stack(void) {
#if defined(BOARD_GUARD_BYTES) && __ARM_ARCH == 7
    set_register(MPU_RBAR, ((uint32_t)(uintptr_t)ansor_stack_low - BOARD_GUARD_BYTES) | 1 << 4 | 7);
    set_register(MPU_RASR, 1 << 28 | (uint32_t)(30 - __builtin_clz(BOARD_GUARD_BYTES)) << 1 | 1); /* nobody may, nor run it */
    set_register(MPU_CTRL, 1 << 2 | 1); /* who has privileges may do all else */
#elif __ARM_ARCH >= 8
    set_register(MPU_CTRL, 0); /* of a run that was halted */
    __asm__ volatile("msr psplim, %0" ::"r"(ansor_stack_low));
#endif
}

#endif
