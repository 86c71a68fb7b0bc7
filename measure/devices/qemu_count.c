/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A plugin for QEMU's user mode that counts instructions between marks. QEMU is licensed under the GPL, version 2 or later, and a plugin becomes part of the
 * process that loads it. So this file has that licence, too; the rest of the package does not. It is optional, built where it is used, and linked with nothing.
 *
 *     qemu-aarch64 -plugin libcount.so,out=FILE PROGRAM        writes a line "mark NUMBER COUNT" to FILE at each mark
 *
 * A mark is a system call that no system defines (MARK), with a number that the program chooses. Instructions are counted by whole blocks, and a system call
 * ends a block: the counts are exact for single-threaded programs.
 *
 * The few functions of QEMU's interface are declared here. -DANSOR_PLUGIN_VERSION is the version of the interface (1: up to QEMU 8). -DANSOR_BY_CALL counts by
 * a call for each block, which every version supports, instead of an addition in the block. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef ANSOR_PLUGIN_VERSION
#define ANSOR_PLUGIN_VERSION 1
#endif
#define IMPORTED __attribute__((weak)) /* resolved when QEMU loads the plugin, not when it is linked */
#define EXPORTED __attribute__((visibility("default")))

enum { MARK = 23130 };

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*called)(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                       uint64_t a7, uint64_t a8);
typedef void (*executed)(unsigned int vcpu, void *data);

IMPORTED void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, translated callback);
IMPORTED void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, called callback);
IMPORTED void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed callback, int flags, void *data);
IMPORTED void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *block, int operation, void *counter, uint64_t number);
IMPORTED size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

EXPORTED int qemu_plugin_version = ANSOR_PLUGIN_VERSION;

static uint64_t count;
static FILE *out;

#ifdef ANSOR_BY_CALL
static void on_block(unsigned int vcpu, void *data) {
    (void)vcpu;
    count += (uint64_t)(uintptr_t)data;
}
#endif

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
    (void)id;
    const size_t instructions = qemu_plugin_tb_n_insns(block);
#ifdef ANSOR_BY_CALL
    qemu_plugin_register_vcpu_tb_exec_cb(block, on_block, 0, (void *)(uintptr_t)instructions);
#else
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, instructions);
#endif
}

static void on_call(qemu_plugin_id_t id, unsigned int vcpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                    uint64_t a7, uint64_t a8) {
    (void)id, (void)vcpu, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
    if (number != MARK || !out) return;
    fprintf(out, "mark %llu %llu\n", (unsigned long long)a1, (unsigned long long)count);
    fflush(out);
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const void *about, int words, char **text) {
    (void)about;
    for (int i = 0; i < words; ++i)
        if (!strncmp(text[i], "out=", 4)) out = fopen(text[i] + 4, "w");
    if (!out) return 1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    return 0;
}
