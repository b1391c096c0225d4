/* SPDX-License-Identifier: MIT */
// Computations of dedup for each chunk: its end (Rabin fingerprint of a sliding window: M. O.
// Rabin, "Fingerprinting by random polynomials", 1981), its SHA-1 digest, and its bytes packed by
// an LZ77. Functions keep no state between calls, so threads may call them concurrently.
#ifndef LISSOM_WORKLOADS_PARSEC_DEDUP_CODEC_H
#define LISSOM_WORKLOADS_PARSEC_DEDUP_CODEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    WINDOW = 32,         // bytes under a Rabin fingerprint
    SMALLEST = 1024,     // smallest fine chunk, except the last of a coarse chunk
    ANCHOR_MASK = 0xfff, // one fingerprint in 4096 ends a chunk
    LZ_HASHES = 1 << 12,
    LZ_WINDOW = 1 << 16,
    LZ_MATCH = 3,  // shortest match
    LZ_DEPTH = 128 // number of candidates that are compared
};

// --- Rabin fingerprints --------------------------------------------------------------------------

struct rabin {
    uint32_t append[256], drop[256];
};

// Multiply a remainder modulo the polynomial of IEEE 802.3, which is irreducible.
static uint32_t times_x(uint32_t remainder, int power) {
    while (power-- > 0)
        remainder = remainder << 1 ^ (remainder >> 31 ? 0x04c11db7u : 0);
    return remainder;
}

static void make_rabin(struct rabin *r) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        r->append[byte] = times_x(byte << 24, 8);
        r->drop[byte] = times_x(byte, 8 * WINDOW);
    }
}

static uint32_t append_byte(const struct rabin *r, uint32_t fingerprint, uint8_t byte) {
    return (fingerprint << 8 | byte) ^ r->append[fingerprint >> 24];
}

// Return the size of the chunk that begins at `p`.
static size_t chunk_size(const struct rabin *r, const uint8_t *p, size_t size) {
    uint32_t fingerprint = 0;
    if (size <= SMALLEST)
        return size;
    for (size_t i = SMALLEST - WINDOW; i < SMALLEST; i++)
        fingerprint = append_byte(r, fingerprint, p[i]);
    for (size_t i = SMALLEST; i < size; i++) {
        if ((fingerprint & ANCHOR_MASK) == ANCHOR_MASK)
            return i;
        fingerprint = append_byte(r, fingerprint, p[i]) ^ r->drop[p[i - WINDOW]];
    }
    return size;
}

// --- SHA-1 (FIPS 180-4) --------------------------------------------------------------------------

struct digest {
    uint32_t word[5];
};

static uint32_t rotated(uint32_t x, int by) { return x << by | x >> (32 - by); }

static inline void sha1_step(uint32_t v[5], uint32_t mixed, uint32_t word) {
    uint32_t next = rotated(v[0], 5) + (mixed + (v[4] + word));
    v[4] = v[3];
    v[3] = v[2];
    v[2] = rotated(v[1], 30);
    v[1] = v[0];
    v[0] = next;
}

// Return word `t` of the message schedule, which keeps its latest 16 words.
static inline uint32_t sha1_word(uint32_t w[16], int t) {
    if (t >= 16)
        w[t % 16] = rotated(w[(t - 3) % 16] ^ w[(t - 8) % 16] ^ w[(t - 14) % 16] ^ w[t % 16], 1);
    return w[t % 16];
}

static void sha1_block(struct digest *d, const uint8_t *p) {
    uint32_t w[16], v[5];
    int t;
    for (t = 0; t < 16; t++)
        w[t] = (uint32_t)p[4 * t] << 24 | (uint32_t)p[4 * t + 1] << 16 |
               (uint32_t)p[4 * t + 2] << 8 | p[4 * t + 3];
    for (int i = 0; i < 5; i++)
        v[i] = d->word[i];
    for (t = 0; t < 20; t++)
        sha1_step(v, (v[1] & v[2]) | (~v[1] & v[3]), sha1_word(w, t) + 0x5a827999);
    for (; t < 40; t++)
        sha1_step(v, v[1] ^ v[2] ^ v[3], sha1_word(w, t) + 0x6ed9eba1);
    for (; t < 60; t++)
        sha1_step(v, (v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3]), sha1_word(w, t) + 0x8f1bbcdc);
    for (; t < 80; t++)
        sha1_step(v, v[1] ^ v[2] ^ v[3], sha1_word(w, t) + 0xca62c1d6);
    for (int i = 0; i < 5; i++)
        d->word[i] += v[i];
}

static struct digest sha1(const uint8_t *p, size_t size) {
    struct digest d = {{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
    uint8_t tail[128] = {0};
    size_t rest = size % 64, padded = rest < 56 ? 64 : 128;
    for (size_t at = 0; at + 64 <= size; at += 64)
        sha1_block(&d, p + at);
    memcpy(tail, p + size - rest, rest);
    tail[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        tail[padded - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> 8 * i);
    for (size_t at = 0; at < padded; at += 64)
        sha1_block(&d, tail + at);
    return d;
}

static int same(const struct digest *a, const struct digest *b) { return !memcmp(a, b, sizeof *a); }

// --- LZ77 ----------------------------------------------------------------------------------------
// Packed data is a list of sequences: a byte with the two lengths (15: more bytes follow), the
// literals, two bytes of distance, and the match. The last sequence ends after its literals.

struct lz {
    int head[LZ_HASHES], before[LZ_WINDOW]; // positions with the same hash
};

static size_t lz_bound(size_t size) { return size + size / 255 + 16; }

static uint32_t lz_hash(const uint8_t *p) {
    return (p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16) * 2654435761u >> 20;
}

static void lz_insert(struct lz *lz, const uint8_t *in, int at) {
    uint32_t hash = lz_hash(in + at);
    lz->before[at % LZ_WINDOW] = lz->head[hash];
    lz->head[hash] = at;
}

// Return the length of the longest earlier match of the bytes at `at`. Pre: LZ_MATCH bytes follow
// `at`.
static int lz_find(const struct lz *lz, const uint8_t *in, int at, int size, int *distance) {
    int best = 0, candidate = lz->head[lz_hash(in + at)];
    for (int i = 0; i < LZ_DEPTH && candidate >= 0 && at - candidate < LZ_WINDOW; i++) {
        int length = 0;
        while (at + length < size && in[candidate + length] == in[at + length])
            length++;
        if (length > best) {
            best = length;
            *distance = at - candidate;
        }
        candidate = lz->before[candidate % LZ_WINDOW];
    }
    return best >= LZ_MATCH ? best : 0;
}

static uint8_t *lz_length(uint8_t *out, int length) {
    for (length -= 15; length >= 255; length -= 255)
        *out++ = 255;
    *out++ = (uint8_t)length;
    return out;
}

// Write a sequence. Returns its end. match: 0: the last sequence.
static uint8_t *lz_sequence(uint8_t *out, const uint8_t *literals, int count, int match,
                            int distance) {
    int coded = match ? match - LZ_MATCH : 0;
    *out++ = (uint8_t)((count < 15 ? count : 15) << 4 | (coded < 15 ? coded : 15));
    if (count >= 15)
        out = lz_length(out, count);
    memcpy(out, literals, (size_t)count);
    out += count;
    if (!match)
        return out;
    *out++ = (uint8_t)distance;
    *out++ = (uint8_t)(distance >> 8);
    return coded >= 15 ? lz_length(out, coded) : out;
}

// Pack `in`. Returns the packed size. Pre: `out` has room for lz_bound(size) bytes.
static size_t lz_pack(struct lz *lz, const uint8_t *in, int size, uint8_t *out) {
    uint8_t *begin = out;
    int literals = 0, at = 0, distance = 0, match = 0;
    for (int i = 0; i < LZ_HASHES; i++)
        lz->head[i] = -1;
    while (at + LZ_MATCH <= size) {
        int next_distance = 0, next = lz_find(lz, in, at, size, &next_distance);
        lz_insert(lz, in, at++);
        // Use a match only if the next position has no longer one.
        if (!match || next > match) {
            match = next;
            distance = next_distance;
            continue;
        }
        int first = at - 2; // first byte of the match
        out = lz_sequence(out, in + literals, first - literals, match, distance);
        literals = first + match;
        for (; at < literals; at++)
            if (at + LZ_MATCH <= size)
                lz_insert(lz, in, at);
        match = 0;
    }
    return (size_t)(lz_sequence(out, in + literals, size - literals, 0, 0) - begin);
}

static size_t lz_read_length(const uint8_t **in, const uint8_t *end, size_t length) {
    uint8_t more = 255;
    while (length >= 15 && more == 255 && *in < end) {
        more = *(*in)++;
        length += more;
    }
    return length;
}

// Unpack. Returns the size, at most `room`. Damaged data gives a wrong size or wrong bytes.
static size_t lz_unpack(const uint8_t *in, size_t packed, uint8_t *out, size_t room) {
    const uint8_t *end = in + packed;
    size_t at = 0;
    while (in < end) {
        uint8_t token = *in++;
        size_t count = lz_read_length(&in, end, token >> 4);
        if (count > (size_t)(end - in) || count > room - at)
            return 0;
        memcpy(out + at, in, count);
        at += count;
        in += count;
        if (end - in < 2)
            return at;
        size_t distance = in[0] | (size_t)in[1] << 8;
        in += 2;
        count = lz_read_length(&in, end, token & 15) + LZ_MATCH;
        if (!distance || distance > at || count > room - at)
            return 0;
        for (; count; count--, at++)
            out[at] = out[at - distance];
    }
    return at;
}

#endif
