/* Receives frames and answers them. Only constants are initialised, so no data must be copied at the start. */
#include "monitor.h"
#include "board.h"

#include "arch.h"

enum { FRAME_START = 0x7E, FRAME_ESCAPE = 0x7D, FLIP = 0x20, VERSION = 1 };
enum { HELLO = 1, OPEN, READ, WRITE, SUM, EXECUTE, RESET, UNPACK };
enum { UNPACKS = 4 }; /* an ability */
enum { ANSWER = 0x80, FAULT = 0xC0, STATE, LOST, STARTED };
enum { FAULT_MEMORY = 1, FAULT_REQUEST, FAULT_JUMP };
enum { HEAD = 11, EXTRA = 32, ROOM = MONITOR_CHUNK + EXTRA, STOP_BYTES = 16, STRIDE = 32, NAME_BYTES = 32 };

struct frame {
    uint8_t kind;
    uint32_t session, number;
    uint32_t size;
    uint8_t body[ROOM];
};

static struct {
    uint8_t ring[MONITOR_RING];
    uint32_t put, taken;
    uint8_t head[HEAD + 4];            /* header, and the checksum at the end */
    uint32_t position, sum;            /* of the frame being received: bytes so far, and their checksum */
    uint8_t inside, escaped;
    uint32_t boot, session, last;
    struct frame asked, answer;
} m;

/* Checksums */

static const uint32_t sums[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
};

static uint32_t summed(uint32_t sum, uint8_t byte)
{
    sum ^= byte;
    sum = (sum >> 4) ^ sums[sum & 15];
    return (sum >> 4) ^ sums[sum & 15];
}

/* Numbers, lowest byte first */

static uint32_t get32(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24; }

static void put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++, value >>= 8) at[i] = (uint8_t)value;
}

static void put64(uint8_t *at, uintptr_t value)
{
    put32(at, (uint32_t)value);
    put32(at + 4, (uint32_t)((uint64_t)value >> 32));
}

/* Returns 1 if it is an address of this processor. */
static int get_address(const uint8_t *at, uintptr_t *address)
{
    uint64_t whole = get32(at) | (uint64_t)get32(at + 4) << 32;
    *address = (uintptr_t)whole;
    return *address == whole;
}

/* The line. Bytes that arrive during other work are kept in the ring: most boards can hold one byte only. */

static void pump(void)
{
    for (int byte; m.put - m.taken < MONITOR_RING && (byte = monitor_getc()) >= 0;) m.ring[m.put++ % MONITOR_RING] = (uint8_t)byte;
}

static void send_raw(uint8_t byte)
{
    while (!monitor_putc(byte)) pump();
    pump();
}

static void send_byte(uint8_t byte)
{
    if (byte == FRAME_START || byte == FRAME_ESCAPE) {
        send_raw(FRAME_ESCAPE);
        byte ^= FLIP;
    }
    send_raw(byte);
}

static void send_frame(uint8_t kind, uint32_t session, uint32_t number, const uint8_t *body, uint32_t size)
{
    uint8_t part[HEAD];
    uint32_t sum = 0xFFFFFFFF;
    part[0] = kind;
    put32(part + 1, session);
    put32(part + 5, number);
    part[9] = (uint8_t)size;
    part[10] = (uint8_t)(size >> 8);
    send_raw(FRAME_START);
    for (uint32_t i = 0; i < HEAD + size; i++) {
        uint8_t byte = i < HEAD ? part[i] : body[i - HEAD];
        sum = summed(sum, byte);
        send_byte(byte);
    }
    put32(part, ~sum);
    for (int i = 0; i < 4; i++) send_byte(part[i]);
    monitor_flush();
}

/* Memory. A fault ends the access, not the monitor. */

static int copied(volatile uint8_t *to, const volatile uint8_t *from, uint32_t size, uintptr_t mask)
{
    if (arch_save()) {
        arch_after();
        return 0;
    }
    arch_armed = 1;
    for (uint32_t i = 0; i < size;) {
        uint32_t end = size - i < STRIDE ? size : i + STRIDE;
        if (mask & 3) /* device registers need whole words, so only unaligned data are copied by bytes */
            for (; i < end; i++) to[i] = from[i];
        else
            for (; i < end; i += 4) *(volatile uint32_t *)(to + i) = *(const volatile uint32_t *)(from + i);
        pump();
    }
    arch_barrier();
    arch_armed = 0;
    return 1;
}

static int range_summed(const volatile uint8_t *from, uint32_t size, uint32_t *result)
{
    static uint32_t sum; /* static: after a fault, local variables may hold anything */
    sum = 0xFFFFFFFF;
    if (arch_save()) {
        arch_after();
        return 0;
    }
    arch_armed = 1;
    for (uint32_t i = 0; i < size; i++) {
        sum = summed(sum, from[i]);
        if (i % STRIDE == 0) pump();
    }
    arch_armed = 0;
    *result = ~sum;
    return 1;
}

/* Requests. Each fills in the answer. */

static void failed(uint8_t code)
{
    m.answer.kind = FAULT;
    m.answer.body[0] = code;
    put32(m.answer.body + 1, arch_cause);
    m.answer.size = 5;
}

static void read_memory(uintptr_t at)
{
    uint32_t size = get32(m.asked.body + 8);
    if (size > MONITOR_CHUNK)
        failed(FAULT_REQUEST);
    else if (!copied(m.answer.body, (const uint8_t *)at, size, at | size))
        failed(FAULT_MEMORY);
    else
        m.answer.size = size;
}

static void write_memory(uintptr_t at)
{
    uint32_t size = m.asked.size - 8;
    if (!copied((uint8_t *)at, m.asked.body + 8, size, at | size)) failed(FAULT_MEMORY);
}

/* Unpacks data of packing.py: literal bytes, and copies of bytes shortly before. Returns 0 after a fault. Truncated data end early: the checksum tells. */
static int unpacked(volatile uint8_t *to, const uint8_t *from, uint32_t size)
{
    if (arch_save()) {
        arch_after();
        return 0;
    }
    arch_armed = 1;
    for (uint32_t i = 0; i < size;) {
        uint32_t kind = from[i++], far = kind >= 0xC0, back = 0, count = kind + 1;
        if (kind >= 0x80) {
            if (i + 1 + far > size) break;
            back = far ? from[i] | (uint32_t)from[i + 1] << 8 : from[i] + 1u;
            count = (kind & 63) + (far ? 4 : 3);
            i += 1 + far;
        } else if (count > size - i) {
            break;
        }
        for (uint32_t n = 0; n < count; n++, to++) {
            *to = back ? *(to - back) : from[i++];
            if (n % STRIDE == 0) pump();
        }
    }
    arch_barrier();
    arch_armed = 0;
    return 1;
}

static void unpack_memory(uintptr_t at)
{
    if (!unpacked((uint8_t *)at, m.asked.body + 8, m.asked.size - 8)) failed(FAULT_MEMORY);
}

static void sum_memory(uintptr_t at)
{
    uint32_t sum;
    if (!range_summed((const uint8_t *)at, get32(m.asked.body + 8), &sum)) {
        failed(FAULT_MEMORY);
        return;
    }
    put32(m.answer.body, sum);
    m.answer.size = 4;
}

static volatile uint8_t came;

static void run(uintptr_t entry, uint32_t milliseconds)
{
    came = (uint8_t)arch_save();
    if (came) {
        arch_after();
        return;
    }
    arch_armed = 1;
    arch_run(entry, milliseconds);
}

static void execute(uintptr_t entry)
{
    static uint8_t jump[STOP_BYTES], before[STOP_BYTES];
    static uintptr_t stop;
    unsigned size = 0;
    if (!get_address(m.asked.body + 8, &stop) || !(size = arch_jump(jump, stop))) {
        failed(FAULT_JUMP);
        return;
    }
    if (!copied(before, (const uint8_t *)stop, size, 1) || !copied((uint8_t *)stop, jump, size, 1)) {
        failed(FAULT_MEMORY);
        return;
    }
    send_frame(STARTED, m.session, m.last, m.answer.body, 0);
    arch_pc = 0;
    arch_cause = 0;
    run(entry, get32(m.asked.body + 16));
    copied((uint8_t *)stop, before, size, 1);
    m.answer.body[0] = came;
    put32(m.answer.body + 1, arch_cause);
    put64(m.answer.body + 5, arch_pc);
    m.answer.size = 13;
}

static void carry_out(void)
{
    static const uint8_t least[] = {[READ] = 12, [WRITE] = 8, [SUM] = 12, [EXECUTE] = 20, [RESET] = 0, [UNPACK] = 8};
    uintptr_t at = 0;
    if (m.asked.kind > UNPACK || m.asked.size < least[m.asked.kind] || (m.asked.kind != RESET && !get_address(m.asked.body, &at))) {
        failed(m.asked.kind > UNPACK ? FAULT_REQUEST : FAULT_MEMORY);
        return;
    }
    if (m.asked.kind == READ) read_memory(at);
    if (m.asked.kind == WRITE) write_memory(at);
    if (m.asked.kind == UNPACK) unpack_memory(at);
    if (m.asked.kind == SUM) sum_memory(at);
    if (m.asked.kind == EXECUTE) execute(at);
    if (m.asked.kind == RESET) {
        monitor_reset();
        failed(FAULT_REQUEST);
    }
}

/* Sessions. Each has the number after that of the last, so that a request of an old session is never mistaken for one of the new. */

static void hello(void)
{
    const struct board_facts *facts = monitor_facts();
    const char *name = facts->name;
    static uint8_t body[36 + NAME_BYTES]; /* separate from the last answer, which may be requested again */
    uint32_t size = 36;
    if (!m.boot) { /* its randomness comes from the host */
        uint32_t mixed = (m.asked.session ^ monitor_now() * 0x9E3779B1u) * 0x85EBCA6Bu;
        m.boot = (mixed ^ mixed >> 15) | 1;
        m.session = m.boot * 0xC2B2AE35u;
    }
    put32(body, m.boot);
    put32(body + 4, m.session);
    put32(body + 8, MONITOR_CHUNK);
    put32(body + 12, MONITOR_RING);
    put64(body + 16, (uintptr_t)facts->ram_start);
    put64(body + 24, (uintptr_t)facts->ram_end);
    body[32] = VERSION;
    body[33] = (uint8_t)(sizeof(uintptr_t) * 8);
    body[34] = facts->abilities | UNPACKS;
    body[35] = 0;
    for (; *name && size < sizeof body; size++) body[size] = (uint8_t)*name++;
    send_frame(ANSWER | HELLO, m.asked.session, 0, body, size);
}

static void open_session(void)
{
    if (!m.boot || m.asked.size < 4 || get32(m.asked.body) != m.boot || m.asked.session - m.session > 1) {
        send_frame(LOST, m.asked.session, 0, m.answer.body, 0);
        return;
    }
    if (m.asked.session != m.session) m.last = 0;
    m.session = m.asked.session;
    send_frame(ANSWER | OPEN, m.session, 0, m.answer.body, 0);
}

static void send_answer(void) { send_frame(m.answer.kind, m.session, m.last, m.answer.body, m.answer.size); }

static void work(void)
{
    uint8_t kind = m.asked.kind;
    if (kind == 0 || kind >= ANSWER) return; /* an echo */
    if (kind == HELLO) {
        hello();
    } else if (kind == OPEN) {
        open_session();
    } else if (!m.boot || m.asked.session != m.session) {
        send_frame(LOST, m.asked.session, m.asked.number, m.answer.body, 0);
    } else if (m.asked.number == m.last + 1) {
        m.last++;
        m.answer.kind = ANSWER | kind;
        m.answer.size = 0;
        carry_out();
        send_answer();
    } else if (m.asked.number == m.last && m.last) {
        send_answer();
    } else {
        send_frame(STATE, m.session, m.last, m.answer.body, 0);
    }
}

/* Receiving. A start marker begins a frame wherever it occurs. */

static void take(uint8_t byte)
{
    uint32_t at = m.position++;
    if (at < HEAD) {
        m.head[at] = byte;
        m.sum = summed(m.sum, byte);
        if (at == HEAD - 1) {
            m.asked.size = m.head[9] | (uint32_t)m.head[10] << 8;
            if (m.asked.size > ROOM) m.inside = 0;
        }
        return;
    }
    if (at < HEAD + m.asked.size) {
        m.asked.body[at - HEAD] = byte;
        m.sum = summed(m.sum, byte);
        return;
    }
    at -= m.asked.size;
    m.head[at] = byte;
    if (at < HEAD + 3) return;
    m.inside = 0;
    if (get32(m.head + HEAD) != ~m.sum) return;
    m.asked.kind = m.head[0];
    m.asked.session = get32(m.head + 1);
    m.asked.number = get32(m.head + 5);
    work();
}

static void receive(uint8_t byte)
{
    if (byte == FRAME_START) {
        m.inside = 1;
        m.escaped = 0;
        m.position = 0;
        m.sum = 0xFFFFFFFF;
    } else if (!m.inside) {
        return;
    } else if (byte == FRAME_ESCAPE) {
        m.escaped = 1;
    } else {
        byte ^= m.escaped ? FLIP : 0;
        m.escaped = 0;
        take(byte);
    }
}

void monitor_step(void)
{
    pump();
    while (m.put != m.taken) {
        receive(m.ring[m.taken++ % MONITOR_RING]);
        pump();
    }
}

void monitor_start(void)
{
    m.put = m.taken = 0;
    m.inside = 0;
    m.boot = m.session = m.last = 0; /* no session yet */
    arch_armed = 0;
    arch_setup();
}

void monitor_main(void)
{
    monitor_setup();
    monitor_start();
    for (;;) {
        monitor_step();
        monitor_wait();
    }
}
