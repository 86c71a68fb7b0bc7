/* A core of VTA in OpenCL C: walks over instructions in program order, ignoring their tokens. One work-group, a work-item for each number of a row: number
   `lane` of an element of INP, ACC and OUT is its own, so that work-items meet only between instructions. Before this text stand sizes, and a macro for each
   field of instructions: OPCODE_FIELD(a, b) of words a and b. Memories of the core are buffers: they stay from run to run. */

typedef struct {
  __global uchar *dram; ulong dram_bytes;
  __global char *inp, *wgt, *out; __global int *acc; __global uint *uop;
  __global long *status;                            /* the first error: number of the instruction + 1, of the fault, memory, place */
  int lane; long now;
} Core;

enum { OP_LOAD = 0, OP_STORE = 1, OP_GEMM = 2, OP_FINISH = 3, OP_ALU = 4 };
enum { UOP = 0, WGT = 1, INP = 2, ACC = 3, OUT = 4, ACC8 = 5 };
enum { SRAM_BOUNDS = 1, DRAM_BOUNDS = 2, NO_INSTRUCTION = 3 };

static int fault(const Core *c, int kind, int memory, long place) {
  if (c->lane == 0 && !c->status[0]) c->status[0] = c->now + 1, c->status[1] = kind, c->status[2] = memory, c->status[3] = place;
  return 0;
}

static int inside(const Core *c, int memory, long place, long depth) { return place < depth ? 1 : fault(c, SRAM_BOUNDS, memory, place); }

static int in_dram(const Core *c, int memory, long first, long size) {
  return (ulong)(first + size) <= c->dram_bytes ? 1 : fault(c, DRAM_BOUNDS, memory, first + size);
}

static void put(const Core *c, int memory, long to, __global const uchar *from) {
  int lane = c->lane;
  switch (memory) {
    case UOP: if (lane == 0) c->uop[to] = *(__global const uint *)from; break;
    case WGT: for (int k = lane; k < BLOCK * BLOCK; k += LANES) c->wgt[to * BLOCK * BLOCK + k] = from[k]; break;
    case INP: c->inp[to * LANES + lane] = from ? from[lane] : 0; break;
    case ACC: c->acc[to * LANES + lane] = from ? ((__global const int *)from)[lane] : 0; break;
    default: c->acc[to * LANES + lane] = from ? (char)from[lane] : 0;
  }
}

static long element_bytes(int memory) {
  return memory == UOP ? 4 : memory == WGT ? BLOCK * BLOCK : memory == ACC ? LANES * 4 : LANES;
}

static long depth_of(int memory) {
  return memory == UOP ? UOP_DEPTH : memory == WGT ? WGT_DEPTH : memory == INP ? INP_DEPTH : ACC_DEPTH;
}

static void load(const Core *c, ulong a, ulong b) {
  int memory = LOAD_MEMORY(a, b);
  if (memory == OUT || memory > ACC8) { fault(c, NO_INSTRUCTION, memory, 0); return; }
  long rows = LOAD_Y_SIZE(a, b), width = LOAD_X_SIZE(a, b), size = element_bytes(memory), depth = depth_of(memory);
  long top = LOAD_Y_PAD_0(a, b), bottom = LOAD_Y_PAD_1(a, b), left = LOAD_X_PAD_0(a, b), right = LOAD_X_PAD_1(a, b);
  long base = LOAD_DRAM_BASE(a, b), stride = LOAD_X_STRIDE(a, b), to = LOAD_SRAM_BASE(a, b), across = left + width + right;
  if (!rows || !width || !inside(c, memory == ACC8 ? ACC : memory, to + (top + rows + bottom) * across - 1, depth)) return;
  for (long y = -top; y < rows + bottom; y++) {
    long first = (base + y * stride) * size;
    int read = y >= 0 && y < rows;
    if (read && !in_dram(c, memory, first, width * size)) return;
    for (long x = -left; x < width + right; x++, to++) put(c, memory, to, read && x >= 0 && x < width ? c->dram + first + x * size : 0);
  }
}

static void store(const Core *c, ulong a, ulong b) {
  long rows = STORE_Y_SIZE(a, b), width = STORE_X_SIZE(a, b), base = STORE_DRAM_BASE(a, b), stride = STORE_X_STRIDE(a, b), from = STORE_SRAM_BASE(a, b);
  if (!rows || !width || !inside(c, OUT, from + rows * width - 1, ACC_DEPTH)) return;
  for (long y = 0; y < rows; y++) {
    long first = (base + y * stride) * LANES;
    if (!in_dram(c, OUT, first, width * LANES)) return;
    for (long x = 0; x < width; x++, from++) c->dram[first + x * LANES + c->lane] = c->out[from * LANES + c->lane];
  }
}

static int dot_of(__global const char *row, __global const char *weights) {
#if BLOCK % 16
  int sum = 0;
  for (int k = 0; k < BLOCK; k++) sum += (int)row[k] * weights[k];
  return sum;
#else
  int16 sums = 0;
  for (int k = 0; k < BLOCK; k += 16) sums += convert_int16(vload16(0, row + k)) * convert_int16(vload16(0, weights + k));
  int8 s8 = sums.lo + sums.hi;
  int4 s4 = s8.lo + s8.hi;
  int2 s2 = s4.lo + s4.hi;
  return s2.x + s2.y;
#endif
}

static int computed(int operation, int x, int y) {
  switch (operation) {
    case 0: return min(x, y);
    case 1: return max(x, y);
    case 2: return (int)((uint)x + (uint)y);
    case 3: return y >= 0 ? x >> min(y, 31) : y <= -32 ? 0 : (int)((uint)x << -y);
    default: return (int)((uint)x * (uint)y);
  }
}

static void put_sum(const Core *c, long dst, int sum) {
  c->acc[dst * LANES + c->lane] = sum;
  c->out[dst * LANES + c->lane] = (char)(uchar)(uint)sum;
}

static void gemm(const Core *c, ulong a, ulong b) {
  int reset = GEMM_RESET(a, b);
  long begin = GEMM_UOP_BGN(a, b), end = GEMM_UOP_END(a, b), row = c->lane / BLOCK * BLOCK, column = c->lane % BLOCK * BLOCK;
  if (begin < end && !inside(c, UOP, end - 1, UOP_DEPTH)) return;
  for (long o = 0; o < GEMM_ITER_OUT(a, b); o++)
    for (long i = 0; i < GEMM_ITER_IN(a, b); i++)
      for (long u = begin; u < end; u++) {
        uint word = c->uop[u];
        long dst = UOP_DST(word) + o * GEMM_DST_OUT(a, b) + i * GEMM_DST_IN(a, b);
        if (!inside(c, ACC, dst, ACC_DEPTH)) return;
        if (reset) { put_sum(c, dst, 0); continue; }
        long src = UOP_SRC(word) + o * GEMM_SRC_OUT(a, b) + i * GEMM_SRC_IN(a, b), wgt = UOP_WGT(word) + o * GEMM_WGT_OUT(a, b) + i * GEMM_WGT_IN(a, b);
        if (!inside(c, INP, src, INP_DEPTH) || !inside(c, WGT, wgt, WGT_DEPTH)) return;
        int sum = dot_of(c->inp + src * LANES + row, c->wgt + wgt * BLOCK * BLOCK + column);
        put_sum(c, dst, (int)((uint)c->acc[dst * LANES + c->lane] + (uint)sum));
      }
}

static void alu(const Core *c, ulong a, ulong b) {
  int operation = ALU_OPERATION(a, b), fixed = ALU_USE_IMM(a, b), immediate = (short)ALU_IMMEDIATE(a, b);
  long begin = ALU_UOP_BGN(a, b), end = ALU_UOP_END(a, b);
  if (operation > 4) { fault(c, NO_INSTRUCTION, ACC, operation); return; }
  if (begin < end && !inside(c, UOP, end - 1, UOP_DEPTH)) return;
  for (long o = 0; o < ALU_ITER_OUT(a, b); o++)
    for (long i = 0; i < ALU_ITER_IN(a, b); i++)
      for (long u = begin; u < end; u++) {
        uint word = c->uop[u];
        long dst = UOP_DST(word) + o * ALU_DST_OUT(a, b) + i * ALU_DST_IN(a, b), src = UOP_SRC(word) + o * ALU_SRC_OUT(a, b) + i * ALU_SRC_IN(a, b);
        if (!inside(c, ACC, dst, ACC_DEPTH) || (!fixed && !inside(c, ACC, src, ACC_DEPTH))) return;
        put_sum(c, dst, computed(operation, c->acc[dst * LANES + c->lane], fixed ? immediate : c->acc[src * LANES + c->lane]));
      }
}

__kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void ansor_vta_core(__global const ulong *words, long count, __global uchar *dram, ulong dram_bytes, __global uint *uop, __global char *wgt, __global char *inp,
                    __global int *acc, __global char *out, __global long *status) {
  Core c = {dram, dram_bytes, inp, wgt, out, acc, uop, status, (int)get_local_id(0), 0};
  for (long n = 0; n < count; n++) {
    ulong a = words[2 * n], b = words[2 * n + 1];
    c.now = n;
    switch (a & 7) {
      case OP_LOAD: load(&c, a, b); break;
      case OP_STORE: store(&c, a, b); break;
      case OP_GEMM: gemm(&c, a, b); break;
      case OP_ALU: alu(&c, a, b); break;
      case OP_FINISH: break;
      default: fault(&c, NO_INSTRUCTION, 0, a & 7);
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
}
