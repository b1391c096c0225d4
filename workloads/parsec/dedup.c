/* SPDX-License-Identifier: MIT */
// Compresses a stream of data by "deduplication": equal chunks are stored once, as dedup of PARSEC.
// Specification: C. Bienia, S. Kumar, J. P. Singh, K. Li, "The PARSEC Benchmark Suite:
// Characterization and Architectural Implications", PACT 2008, and C. Bienia, "Benchmarking Modern
// Multiprocessors", dissertation, Princeton 2011.
//
// A pipeline of five stages. --threads N starts 3N+2 threads.
//
// fragment     1 thread   cuts coarse chunks of 2 MiB
// refine       N threads  cuts them at Rabin fingerprints into fine chunks of 5 KiB
// deduplicate  N threads  searches SHA-1 digests in a hash table
// compress     N threads  packs new chunks
// reorder      1 thread   writes all chunks in their order
//
// Synchronization: every four threads of a stage share a bounded queue with a mutex and two
// condition variables. Threads put and take up to 20 chunks under one lock. Coarse chunks enter a
// queue one by one; a refining thread takes all of its queue's, so the others of that queue may get
// none. Each fine chunk takes the lock of its hash bucket once. Each new chunk has a lock, held
// while a thread compresses it, and while the last stage writes it or a duplicate of it. That stage
// waits on the chunk's condition variable if the chunk is not compressed yet. Fragment and refine
// end early; compress has half of the work.
//
// Differences: the program generates its input and keeps its output in memory, so that it measures
// no disk. An LZ77 with hash chains replaces zlib. Each round restores the input from the output.
// The published inputs have 10, 31 and 184 MB; these classes have 20, 92 and 368 MiB.
#include <pthread.h>
#include <stdalign.h>

#include "../suite.h"
#include "dedup_codec.h"
#include "draw.h"

enum {
    COARSE = 2 << 20,
    BATCH = 20, // chunks passed from stage to stage at a time
    COARSE_BATCH = 10000,
    THREADS_PER_QUEUE = 4,
    QUEUE_SLOTS = 1 << 20,
    BUCKETS = 1 << 16
};

enum state { RAW, PACKED, WRITTEN };

struct chunk {
    const uint8_t *data;
    size_t size;
    long coarse, fine; // place in the stream
    int last;          // whether it is the last fine chunk of its coarse chunk
    struct digest digest;
    struct chunk *original; // the chunk itself, if it is new
    // The rest is for new chunks.
    struct chunk *next; // next chunk of its bucket
    pthread_mutex_t lock;
    pthread_cond_t packed_now;
    enum state state;
    uint8_t *packed;
    size_t packed_size;
};

struct queue {
    alignas(LINE) pthread_mutex_t lock;
    pthread_cond_t not_empty, not_full;
    struct chunk **slot;
    long taken, put; // numbers so far; modulo QUEUE_SLOTS: slot
    long producers;  // number of producers still at work
};

struct bucket {
    pthread_mutex_t lock;
    struct chunk *first;
};

struct job {
    uint8_t *input;
    size_t size;
    struct rabin rabin;
    long queues; // number between two stages
    struct queue *to_refine, *to_deduplicate, *to_compress, *to_reorder;
    struct bucket *bucket;
    uint8_t *output;
    size_t written;
    long chunks, unique;
};

struct worker {
    alignas(LINE) pthread_t thread;
    struct job *job;
    long queue; // number of the queues that it uses
    long locks, waits, signals;
};

struct batch {
    struct chunk *chunk[BATCH];
    long count;
};

// --- queues --------------------------------------------------------------------------------------

static void take_lock(struct worker *me, pthread_mutex_t *lock) {
    pthread_mutex_lock(lock);
    me->locks++;
}

static void wait_for(struct worker *me, pthread_cond_t *condition, pthread_mutex_t *lock) {
    me->waits++;
    pthread_cond_wait(condition, lock);
}

static struct queue *make_queues(const struct job *job, long threads, long producers_per_thread) {
    struct queue *q = suite_memory(sizeof *q * (size_t)job->queues);
    for (long i = 0; i < job->queues; i++) {
        long users = threads - i * THREADS_PER_QUEUE;
        users = users < THREADS_PER_QUEUE ? users : THREADS_PER_QUEUE;
        pthread_mutex_init(&q[i].lock, NULL);
        pthread_cond_init(&q[i].not_empty, NULL);
        pthread_cond_init(&q[i].not_full, NULL);
        q[i].slot = calloc(QUEUE_SLOTS, sizeof(struct chunk *)); // pages are faulted in when used
        if (!q[i].slot)
            fail("no memory for a queue");
        q[i].producers = producers_per_thread ? producers_per_thread * users : 1;
    }
    return q;
}

static void free_queues(struct job *job, struct queue *q) {
    for (long i = 0; i < job->queues; i++) {
        pthread_mutex_destroy(&q[i].lock);
        pthread_cond_destroy(&q[i].not_empty);
        pthread_cond_destroy(&q[i].not_full);
        free(q[i].slot);
    }
    free(q);
}

static void put(struct worker *me, struct queue *q, struct chunk *const *chunk, long count) {
    while (count) {
        take_lock(me, &q->lock);
        while (q->put - q->taken == QUEUE_SLOTS)
            wait_for(me, &q->not_full, &q->lock);
        for (; count && q->put - q->taken < QUEUE_SLOTS; count--)
            q->slot[q->put++ % QUEUE_SLOTS] = *chunk++;
        me->signals++;
        pthread_cond_signal(&q->not_empty);
        pthread_mutex_unlock(&q->lock);
    }
}

static void put_batch(struct worker *me, struct queue *q, struct batch *batch) {
    put(me, q, batch->chunk, batch->count);
    batch->count = 0;
}

static void put_later(struct worker *me, struct queue *q, struct batch *batch, struct chunk *c) {
    batch->chunk[batch->count++] = c;
    if (batch->count == BATCH)
        put_batch(me, q, batch);
}

// Take up to `most` chunks. Returns their number; 0: the queue is empty and stays so.
static long take(struct worker *me, struct queue *q, struct chunk **chunk, long most) {
    long count = 0;
    take_lock(me, &q->lock);
    while (q->put == q->taken && q->producers)
        wait_for(me, &q->not_empty, &q->lock);
    while (count < most && q->taken < q->put)
        chunk[count++] = q->slot[q->taken++ % QUEUE_SLOTS];
    if (count) {
        me->signals++;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return count;
}

// End one producer of a queue.
static void end_puts(struct worker *me, struct queue *q) {
    take_lock(me, &q->lock);
    if (!--q->producers) {
        me->signals++;
        pthread_cond_broadcast(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
}

// --- the stages ----------------------------------------------------------------------------------

static struct chunk *new_chunk(const uint8_t *data, size_t size, long coarse, long fine) {
    struct chunk *c = malloc(sizeof *c);
    if (!c)
        fail("no memory for a chunk");
    *c = (struct chunk){.data = data, .size = size, .coarse = coarse, .fine = fine};
    return c;
}

static void *fragment(void *argument) {
    struct worker *me = argument;
    struct job *job = me->job;
    long coarse = 0;
    for (size_t at = 0; at < job->size; coarse++) {
        size_t size = job->size - at;
        if (size > COARSE)
            size = COARSE + chunk_size(&job->rabin, job->input + at + COARSE, size - COARSE);
        struct chunk *c = new_chunk(job->input + at, size, coarse, 0);
        put(me, &job->to_refine[coarse % job->queues], &c, 1);
        at += size;
    }
    for (long i = 0; i < job->queues; i++)
        end_puts(me, &job->to_refine[i]);
    return NULL;
}

static void *refine(void *argument) {
    struct worker *me = argument;
    struct job *job = me->job;
    struct queue *in = &job->to_refine[me->queue], *out = &job->to_deduplicate[me->queue];
    struct chunk **fetched = suite_memory(COARSE_BATCH * sizeof *fetched);
    struct batch batch = {.count = 0};
    for (long count; (count = take(me, in, fetched, COARSE_BATCH));) {
        for (long i = 0; i < count; i++) {
            const struct chunk *coarse = fetched[i];
            long fine = 0;
            for (size_t at = 0, size; at < coarse->size; at += size) {
                size = chunk_size(&job->rabin, coarse->data + at, coarse->size - at);
                struct chunk *c = new_chunk(coarse->data + at, size, coarse->coarse, fine++);
                c->last = at + size == coarse->size;
                put_later(me, out, &batch, c);
            }
            free(fetched[i]);
        }
    }
    put_batch(me, out, &batch);
    end_puts(me, out);
    free(fetched);
    return NULL;
}

static struct chunk *find_or_add(struct worker *me, struct bucket *bucket, struct chunk *c) {
    take_lock(me, &bucket->lock);
    struct chunk *found = bucket->first;
    while (found && !same(&found->digest, &c->digest))
        found = found->next;
    if (!found) {
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->packed_now, NULL);
        c->next = bucket->first;
        bucket->first = found = c;
    }
    pthread_mutex_unlock(&bucket->lock);
    return found;
}

static void *deduplicate(void *argument) {
    struct worker *me = argument;
    struct job *job = me->job;
    struct queue *to_compress = &job->to_compress[me->queue];
    struct queue *to_reorder = &job->to_reorder[me->queue];
    struct chunk *fetched[BATCH];
    struct batch fresh = {.count = 0}, known = {.count = 0};
    for (long count; (count = take(me, &job->to_deduplicate[me->queue], fetched, BATCH));) {
        for (long i = 0; i < count; i++) {
            struct chunk *c = fetched[i];
            c->digest = sha1(c->data, c->size);
            c->original = find_or_add(me, &job->bucket[c->digest.word[0] % BUCKETS], c);
            if (c->original == c)
                put_later(me, to_compress, &fresh, c);
            else
                put_later(me, to_reorder, &known, c);
        }
    }
    put_batch(me, to_compress, &fresh);
    put_batch(me, to_reorder, &known);
    end_puts(me, to_compress);
    end_puts(me, to_reorder);
    return NULL;
}

static void *compress(void *argument) {
    struct worker *me = argument;
    struct queue *out = &me->job->to_reorder[me->queue];
    struct lz *lz = suite_memory(sizeof *lz);
    struct chunk *fetched[BATCH];
    struct batch batch = {.count = 0};
    for (long count; (count = take(me, &me->job->to_compress[me->queue], fetched, BATCH));) {
        for (long i = 0; i < count; i++) {
            struct chunk *c = fetched[i];
            take_lock(me, &c->lock);
            c->packed = malloc(lz_bound(c->size));
            if (!c->packed)
                fail("no memory for a chunk");
            c->packed_size = lz_pack(lz, c->data, (int)c->size, c->packed);
            c->state = PACKED;
            me->signals++;
            pthread_cond_broadcast(&c->packed_now);
            pthread_mutex_unlock(&c->lock);
            put_later(me, out, &batch, c);
        }
    }
    put_batch(me, out, &batch);
    end_puts(me, out);
    free(lz);
    return NULL;
}

// The output of a chunk: this header, then packed_size bytes.
struct entry {
    uint32_t size, packed_size; // packed_size 0: a chunk with this digest came before
    struct digest digest;
};

static void write_bytes(struct job *job, const void *data, size_t size) {
    memcpy(job->output + job->written, data, size);
    job->written += size;
}

static void write_chunk(struct worker *me, struct chunk *c) {
    struct job *job = me->job;
    struct chunk *original = c->original;
    take_lock(me, &original->lock);
    while (original->state == RAW)
        wait_for(me, &original->packed_now, &original->lock);
    struct entry entry = {(uint32_t)c->size, 0, c->digest};
    if (original->state == PACKED)
        entry.packed_size = (uint32_t)original->packed_size;
    write_bytes(job, &entry, sizeof entry);
    if (original->state == PACKED) {
        write_bytes(job, original->packed, original->packed_size);
        original->state = WRITTEN;
        job->unique++;
        free(original->packed);
    }
    pthread_mutex_unlock(&original->lock);
    job->chunks++;
    if (c != original)
        free(c);
}

// Fine chunks of a coarse chunk, by number.
struct row {
    struct chunk **chunk;
    long room;
};

static void keep(struct row *row, struct chunk *c) {
    if (c->fine >= row->room) {
        long room = 2 * c->fine + 512;
        row->chunk = realloc(row->chunk, (size_t)room * sizeof c);
        if (!row->chunk)
            fail("no memory to reorder chunks");
        memset(row->chunk + row->room, 0, (size_t)(room - row->room) * sizeof c);
        row->room = room;
    }
    row->chunk[c->fine] = c;
}

// Write all chunks in order. Waits for its queues in turn, and for chunks. No earlier stage waits
// for this thread meanwhile, because a queue has room for all chunks of the input.
static void *reorder(void *argument) {
    struct worker *me = argument;
    struct job *job = me->job;
    size_t rows = job->size / COARSE + 2; // one row more than needed, which stays empty
    struct row *row = suite_memory(rows * sizeof *row);
    struct chunk *fetched[BATCH];
    long coarse = 0, fine = 0, ended = 0;
    for (long i = 0; ended < job->queues; i = (i + 1) % job->queues) {
        long count = take(me, &job->to_reorder[i], fetched, BATCH);
        ended = count ? 0 : ended + 1;
        for (long k = 0; k < count; k++)
            keep(&row[fetched[k]->coarse], fetched[k]);
        while (fine < row[coarse].room && row[coarse].chunk[fine]) {
            int last = row[coarse].chunk[fine]->last;
            write_chunk(me, row[coarse].chunk[fine]);
            fine = last ? 0 : fine + 1;
            if (last)
                free(row[coarse++].chunk);
        }
    }
    free(row);
    return NULL;
}

// --- input and check -----------------------------------------------------------------------------

enum { WORDS = 1024, WORD = 12 };

// Generate the input. Of 100 documents 45 are copies of earlier data with a few bytes changed. 45
// are text in words of skewed frequency, and 10 are random bytes.
static uint8_t *make_input(size_t size) {
    uint8_t *data = suite_memory(size);
    char(*word)[WORD] = suite_memory(WORDS * sizeof *word);
    uint64_t state = 1;
    for (int i = 0; i < WORDS; i++)
        for (int length = 2 + (int)(draw(&state) % (WORD - 2)), k = 0; k < length; k++)
            word[i][k] = k < length - 1 ? (char)('a' + draw(&state) % 26) : ' ';
    for (size_t at = 0; at < size;) {
        uint64_t bits = draw(&state), kind = bits % 100;
        size_t begin = at, end = at + 4096 + (bits >> 8) % 196608;
        end = end < size ? end : size;
        if (kind < 45 && begin > end - begin) {
            size_t from = draw(&state) % (begin - (end - begin));
            memcpy(data + begin, data + from, end - begin);
            for (at = end; begin + 32768 < end; begin += 32768)
                data[begin + draw(&state) % 32768] ^= 1;
        } else if (kind < 90) {
            while (at < end) {
                uint64_t two = draw(&state);
                const char *w = word[(two >> 32) % (1 + (two & 0xffffffff) % WORDS)];
                while (*w && at < end)
                    data[at++] = (uint8_t)*w++;
            }
        } else {
            for (; at < end; at++)
                data[at] = (uint8_t)draw(&state);
        }
    }
    free(word);
    return data;
}

// Place where the data of a digest was restored first. Open addressing, without removal.
struct place {
    struct digest digest;
    uint8_t *data; // NULL: free
};

static struct place *find_place(struct place *table, size_t places, const struct digest *digest) {
    size_t i = digest->word[1] % places;
    while (table[i].data && !same(&table[i].digest, digest))
        i = (i + 1) % places;
    return &table[i];
}

// Restore the input from the output and compare them.
static void check_output(const struct job *job) {
    uint8_t *restored = suite_memory(job->size);
    size_t places = 2 * (size_t)job->unique + 1, size = 0;
    struct place *table = suite_memory(places * sizeof *table);
    for (size_t at = 0; at < job->written;) {
        struct entry entry;
        memcpy(&entry, job->output + at, sizeof entry);
        at += sizeof entry;
        struct place *place = find_place(table, places, &entry.digest);
        if (!entry.packed_size == !place->data || entry.size > job->size - size)
            fail("parsec/dedup: the entry at %zu of the output is wrong", at);
        if (entry.packed_size) {
            size_t unpacked =
                lz_unpack(job->output + at, entry.packed_size, restored + size, entry.size);
            place->digest = sha1(restored + size, unpacked);
            place->data = restored + size;
            if (unpacked != entry.size || !same(&place->digest, &entry.digest))
                fail("parsec/dedup: the chunk at %zu of the output is wrong", at);
            at += entry.packed_size;
        } else {
            memcpy(restored + size, place->data, entry.size);
        }
        size += entry.size;
    }
    if (size != job->size || memcmp(restored, job->input, size))
        fail("parsec/dedup: the output does not restore the input");
    free(table);
    free(restored);
}

static void check_sha1(void) {
    static const struct digest published = {
        {0xa9993e36, 0x4706816a, 0xba3e2571, 0x7850c26c, 0x9cd0d89d}};
    struct digest digest = sha1((const uint8_t *)"abc", 3);
    if (!same(&digest, &published))
        fail("parsec/dedup: SHA-1 of abc is wrong");
}

// --- a round -------------------------------------------------------------------------------------

static void start(struct job *job, struct worker *w, void *(*stage)(void *), long index) {
    w->job = job;
    w->queue = index / THREADS_PER_QUEUE;
    int error = pthread_create(&w->thread, NULL, stage, w);
    if (error)
        fail("parsec/dedup: a thread cannot be created: %s", strerror(error));
}

static void run_pipeline(struct job *job, struct worker *worker, long threads) {
    void *(*const pooled[])(void *) = {refine, deduplicate, compress};
    struct worker *w = worker;
    start(job, w++, fragment, 0);
    for (int stage = 0; stage < 3; stage++)
        for (long i = 0; i < threads; i++)
            start(job, w++, pooled[stage], i);
    start(job, w++, reorder, 0);
    while (w-- > worker)
        pthread_join(w->thread, NULL);
}

static void clear_table(struct job *job) {
    for (long i = 0; i < BUCKETS; i++) {
        for (struct chunk *c = job->bucket[i].first, *next; c; c = next) {
            next = c->next;
            pthread_mutex_destroy(&c->lock);
            pthread_cond_destroy(&c->packed_now);
            free(c);
        }
        job->bucket[i].first = NULL;
    }
}

static void count_worker(struct suite *s, const struct worker *w) {
    suite_count(s, "locks", w->locks);
    suite_count(s, "waits", w->waits);
    suite_count(s, "signals", w->signals);
}

static void solve(struct suite *s, struct job *job) {
    long workers = 3 * s->threads + 2;
    struct worker *worker = suite_memory(sizeof *worker * (size_t)workers);
    job->queues = (s->threads + THREADS_PER_QUEUE - 1) / THREADS_PER_QUEUE;
    job->to_refine = make_queues(job, s->threads, 0);
    job->to_deduplicate = make_queues(job, s->threads, 1);
    job->to_compress = make_queues(job, s->threads, 1);
    job->to_reorder = make_queues(job, s->threads, 2);
    suite_start(s);
    run_pipeline(job, worker, s->threads);
    suite_stop(s);
    for (long i = 0; i < workers; i++)
        count_worker(s, &worker[i]);
    free_queues(job, job->to_refine);
    free_queues(job, job->to_deduplicate);
    free_queues(job, job->to_compress);
    free_queues(job, job->to_reorder);
    free(worker);
}

int main(int argc, char **argv) {
    static const char *const classes[] = {"test", "small", "medium", "large", NULL};
    static const struct {
        size_t mib;
        double chunks, unique, bytes;
    } known[] = {{1, 229, 127, 499242},
                 {20, 4155, 2553, 10620060},
                 {92, 19078, 11713, 48754030},
                 {368, 75932, 47824, 196330605}};
    struct suite s = suite_parse("parsec/dedup", classes, argc, argv);
    struct job job = {.size = known[s.class_index].mib << 20};
    size_t most = job.size / SMALLEST + job.size / COARSE + 2; // maximum number of chunks
    if (most > QUEUE_SLOTS)
        fail("parsec/dedup: a queue has no room for %zu chunks", most);
    job.input = make_input(job.size);
    job.output = suite_memory(lz_bound(job.size) + most * (lz_bound(0) + sizeof(struct entry)));
    job.bucket = suite_memory(BUCKETS * sizeof *job.bucket);
    for (long i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&job.bucket[i].lock, NULL);
    make_rabin(&job.rabin);
    check_sha1();
    do {
        job.written = 0;
        job.chunks = job.unique = 0;
        solve(&s, &job);
        check_output(&job);
        suite_verify(&s, "chunks", (double)job.chunks, known[s.class_index].chunks, 0);
        suite_verify(&s, "unique chunks", (double)job.unique, known[s.class_index].unique, 0);
        suite_verify(&s, "bytes written", (double)job.written, known[s.class_index].bytes, 0);
        suite_checksum(&s, suite_hash(0, job.output, job.written));
        suite_count(&s, "chunks", job.chunks);
        suite_count(&s, "unique", job.unique);
        clear_table(&job);
    } while (suite_next(&s));
    free(job.bucket);
    free(job.output);
    free(job.input);
    return suite_report(&s);
}
