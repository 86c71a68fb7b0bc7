/* SHA-256 (FIPS 180-4), HMAC (RFC 2104) and digits. */

#include <stdint.h>
#include <string.h>

enum { DIGEST_BYTES = 32, DIGEST_DIGITS = 64, HASH_BLOCK = 64 };

typedef struct {
    uint32_t state[8];
    uint64_t length;
    unsigned char block[HASH_BLOCK];
} Sha256;

typedef struct {
    Sha256 inner, outer;
} Hmac;

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t ROUND_CONSTANTS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74,
    0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d,
    0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e,
    0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t turned(uint32_t word, int bits) {
    return word >> bits | word << (32 - bits);
}

static void sha256_block(Sha256 *hash, const unsigned char *block) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++) w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        const uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ a >> 3) + w[i - 7] + (turned(b, 17) ^ turned(b, 19) ^ b >> 10);
    }
    memcpy(s, hash->state, sizeof s);
    for (int i = 0; i < 64; i++) {
        const uint32_t sum_e = turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25), choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
        const uint32_t sum_a = turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22), majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        const uint32_t one = s[7] + sum_e + choice + ROUND_CONSTANTS[i] + w[i];
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += one;
        s[0] = one + sum_a + majority;
    }
    for (int i = 0; i < 8; i++) hash->state[i] += s[i];
}

static void sha256_start(Sha256 *hash) {
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, initial, sizeof initial);
    hash->length = 0;
}

static void sha256_add(Sha256 *hash, const void *data, size_t size) {
    const unsigned char *bytes = data;
    while (size > 0) {
        const size_t used = hash->length % HASH_BLOCK, part = size < HASH_BLOCK - used ? size : HASH_BLOCK - used;
        memcpy(hash->block + used, bytes, part);
        hash->length += part, bytes += part, size -= part;
        if (hash->length % HASH_BLOCK == 0) sha256_block(hash, hash->block);
    }
}

static void sha256_end(Sha256 *hash, unsigned char *digest) {
    static const unsigned char padding[HASH_BLOCK] = {0x80};
    const uint64_t bits = hash->length * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(hash, padding, 1 + (119 - hash->length % HASH_BLOCK) % HASH_BLOCK);
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < DIGEST_BYTES; i++) digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* Prepares a key: each message starts from a copy of the result. */
static void hmac_start(Hmac *mac, const void *key, size_t size) {
    unsigned char block[HASH_BLOCK] = {0};
    if (size > HASH_BLOCK) {
        Sha256 hash;
        sha256_start(&hash);
        sha256_add(&hash, key, size);
        sha256_end(&hash, block);
    } else if (size > 0) {
        memcpy(block, key, size);
    }
    for (int i = 0; i < HASH_BLOCK; i++) block[i] ^= 0x36;
    sha256_start(&mac->inner);
    sha256_add(&mac->inner, block, sizeof block);
    for (int i = 0; i < HASH_BLOCK; i++) block[i] ^= 0x36 ^ 0x5c;
    sha256_start(&mac->outer);
    sha256_add(&mac->outer, block, sizeof block);
}

static void hmac_add(Hmac *mac, const void *data, size_t size) {
    sha256_add(&mac->inner, data, size);
}

static void hmac_end(Hmac *mac, unsigned char *digest) {
    sha256_end(&mac->inner, digest);
    sha256_add(&mac->outer, digest, DIGEST_BYTES);
    sha256_end(&mac->outer, digest);
}

/* Compares in constant time. */
static int same_digest(const unsigned char *one, const unsigned char *other) {
    volatile unsigned char differ = 0;
    for (int i = 0; i < DIGEST_BYTES; i++) differ |= one[i] ^ other[i];
    return differ == 0;
}

static void digits_of(const unsigned char *digest, char *text) {
    for (int i = 0; i < DIGEST_BYTES; i++) {
        text[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        text[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    text[DIGEST_DIGITS] = 0;
}

/* Whether `text` is a digest in lower-case hexadecimal digits; `digest` may be NULL. */
static int digest_of(const char *text, unsigned char *digest) {
    if (strlen(text) != DIGEST_DIGITS) return 0;
    for (int i = 0; i < DIGEST_DIGITS; i++) {
        const char c = text[i];
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value < 0) return 0;
        if (digest) digest[i / 2] = (unsigned char)(i % 2 ? digest[i / 2] | value : value << 4);
    }
    return 1;
}
