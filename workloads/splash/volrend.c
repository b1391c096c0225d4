/* SPDX-License-Identifier: MIT */
// Ray casting of a volume, as Volrend of SPLASH-2: Woo, Ohara, Torrie, Singh, Gupta, "The SPLASH-2
// Programs: Characterization and Methodological Considerations", ISCA 1995. The algorithm is that
// of Nieh and Levoy, "Volume Rendering on Scalable Shared-Memory MIMD Architectures", 1992, and
// Levoy, "Efficient Ray Tracing of Volume Data", ACM Trans. Graphics 9, 1990. It has a table of
// shades by direction of the surface, a pyramid of bits to skip transparent space, trilinear
// interpolation, and rays that end early. Each frame turns the volume by 3 degrees.
//
// Synchronization: a frame has 5 barriers and 2 busy waits. Each thread decrements a counter, under
// a lock, after its share of the shades, and spins until the counter is 0. It then takes tiles of
// 4x4 pixels from its own queue, and steals from the others' queues. Each queue has a lock. Threads
// without a tile read the queues, without a lock, until each thread has emptied its own queue. No
// busy wait pauses or yields, as in the original. Tiles beside the volume take no time.
//
// Differences: the volume is generated, a cube, and sampled at whole steps of its unit. Rays are
// not adaptive, which is the original's default. The number of threads is arbitrary.
#include "parmacs.h"

enum { TILE = 4, MAX_LEVELS = 10, FACETS = 64, LONGEST = 4096 };

static const char *const classes[] = {"small", "test", "medium", "large", NULL};
static const struct {
    long size, frames;
    double brightness; // mean of all pixels of all frames
} sizes[] = {{128, 8, 19.182864718967},
             {32, 3, 20.231481481481},
             {128, 60, 23.427804000289},
             {256, 40, 21.944251844618}};

static const float opaque = 0.95f, sight = 0.02f; // opacity limits: end of a ray, visible sample

struct voxel {
    uint8_t density, opacity;
    uint16_t normal; // index of the shade
};

// Ranges of pixels, without their ends.
struct section {
    long x, x_end, y, y_end, tiles_x, tiles;
};

struct queue {
    _Alignas(LINE) pthread_mutex_t lock;
    atomic_long next; // next tile; written under the lock
    struct section section;
};

struct view {
    float start[3], right[3], down[3], forward[3]; // of pixel (0, 0); per pixel; per sample
};

struct volrend {
    long size, image_size, frames;
    int levels;
    struct voxel *voxels;
    uint8_t *filled[MAX_LEVELS]; // whether any corner of a cell of 2^level voxels has opacity
    float *shade;
    uint8_t *image;
    struct view view;
    struct queue *queues;
    pthread_mutex_t count_lock, unfinished_lock;
    atomic_long unshaded;   // number of threads that have not made their shades
    atomic_long unfinished; // number of threads that have not emptied their queues
    // Sums of all threads and frames, protected by count_lock.
    uint64_t checksum, brightness, samples;
};

static struct voxel *voxel_at(const struct volrend *v, long x, long y, long z) {
    return v->voxels + (z * v->size + y) * v->size + x;
}

// Return smooth noise in [0, 1) of a lattice with the given spacing.
static float noise(const long *at, long spacing) {
    float sum = 0;
    for (int corner = 0; corner < 8; corner++) {
        float weight = 1;
        uint64_t index = 0;
        for (int axis = 0; axis < 3; axis++) {
            long cell = at[axis] / spacing, high = corner >> axis & 1;
            float part = (float)(at[axis] % spacing) / (float)spacing;
            weight *= high ? part : 1 - part;
            index = index * 1024 + (uint64_t)(cell + high);
        }
        sum += weight * (float)uniform_at(5, index);
    }
    return sum;
}

// Generate a head: skin, skull and brain are ellipsoids with rough surfaces.
static void make_volume(struct volrend *v) {
    const float axes[3] = {0.36f, 0.46f, 0.40f};
    long at[3], n = v->size;
    for (at[2] = 0; at[2] < n; at[2]++)
        for (at[1] = 0; at[1] < n; at[1]++)
            for (at[0] = 0; at[0] < n; at[0]++) {
                float square = 0;
                for (int axis = 0; axis < 3; axis++) {
                    float unit = ((float)at[axis] + 0.5f) / (float)n - 0.5f;
                    square += unit * unit / (axes[axis] * axes[axis]);
                }
                if (square > 1.3f)
                    continue;
                float radius = sqrtf(square) + 0.2f * (noise(at, n / 8) - 0.5f);
                float density = radius > 1.0f    ? 0
                                : radius > 0.9f  ? 70
                                : radius > 0.8f  ? 190
                                : radius > 0.75f ? 30
                                                 : 90 + 80 * (noise(at, n / 16) - 0.5f);
                voxel_at(v, at[0], at[1], at[2])->density = (uint8_t)density;
            }
}

// Compute central differences of the density, one-sided at the border.
static void gradient(const struct volrend *v, long x, long y, long z, float *g) {
    long at[3] = {x, y, z};
    for (int axis = 0; axis < 3; axis++) {
        long low[3] = {x, y, z}, high[3] = {x, y, z};
        low[axis] -= at[axis] > 0;
        high[axis] += at[axis] < v->size - 1;
        g[axis] = (float)(voxel_at(v, high[0], high[1], high[2])->density -
                          voxel_at(v, low[0], low[1], low[2])->density);
    }
}

// Return the facet of a direction: a point of an octahedron, whose 8 faces unfold to a square of
// facets.
static uint16_t facet_of(const float *g) {
    float size = fabsf(g[0]) + fabsf(g[1]) + fabsf(g[2]);
    if (size == 0)
        return 0;
    float a = g[0] / size, b = g[1] / size;
    if (g[2] < 0) {
        float folded = (1 - fabsf(b)) * (a < 0 ? -1 : 1);
        b = (1 - fabsf(a)) * (b < 0 ? -1 : 1);
        a = folded;
    }
    int i = (int)((a + 1) * (FACETS - 1) / 2 + 0.5f), j = (int)((b + 1) * (FACETS - 1) / 2 + 0.5f);
    return (uint16_t)(j * FACETS + i);
}

static void facet_normal(long facet, float *normal) {
    float a = (float)(facet % FACETS) * 2 / (FACETS - 1) - 1;
    float b = (float)(facet / FACETS) * 2 / (FACETS - 1) - 1;
    float c = 1 - fabsf(a) - fabsf(b);
    if (c < 0) {
        float unfolded = (1 - fabsf(b)) * (a < 0 ? -1 : 1);
        b = (1 - fabsf(a)) * (b < 0 ? -1 : 1);
        a = unfolded;
    }
    float scale = 1 / sqrtf(a * a + b * b + c * c);
    normal[0] = a * scale;
    normal[1] = b * scale;
    normal[2] = c * scale;
}

static void make_normals(struct volrend *v, const struct team *team, long id) {
    long z = share_start(v->size, team->threads, id), end = z + share(v->size, team->threads, id);
    for (; z < end; z++)
        for (long y = 0; y < v->size; y++)
            for (long x = 0; x < v->size; x++) {
                float g[3];
                gradient(v, x, y, z, g);
                voxel_at(v, x, y, z)->normal = facet_of(g);
            }
}

// Compute opacities, which grow with the gradient: surfaces are opaque.
static void make_opacities(struct volrend *v, const struct team *team, long id) {
    long z = share_start(v->size, team->threads, id), end = z + share(v->size, team->threads, id);
    for (; z < end; z++)
        for (long y = 0; y < v->size; y++)
            for (long x = 0; x < v->size; x++) {
                struct voxel *voxel = voxel_at(v, x, y, z);
                float g[3];
                gradient(v, x, y, z, g);
                float steep = sqrtf(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]) / 128;
                float dense = voxel->density < 20 ? 0 : (float)voxel->density;
                voxel->opacity = (uint8_t)(dense * (steep < 1 ? steep : 1));
            }
}

// Make a share of one level of the pyramid, from the voxels or the level below.
static void make_level(struct volrend *v, const struct team *team, long id, int level) {
    long cells = v->size >> level;
    long z = share_start(cells, team->threads, id), end = z + share(cells, team->threads, id);
    for (; z < end; z++)
        for (long y = 0; y < cells; y++)
            for (long x = 0; x < cells; x++) {
                int any = 0;
                for (int corner = 0; corner < 8; corner++) {
                    long to_x = corner & 1, to_y = corner >> 1 & 1, to_z = corner >> 2;
                    if (level > 0) {
                        long below = 2 * cells;
                        any |=
                            v->filled[level - 1][((2 * z + to_z) * below + 2 * y + to_y) * below +
                                                 2 * x + to_x];
                    } else if (x + to_x < cells && y + to_y < cells && z + to_z < cells) {
                        any |= voxel_at(v, x + to_x, y + to_y, z + to_z)->opacity > 0;
                    }
                }
                v->filled[level][(z * cells + y) * cells + x] = (uint8_t)any;
            }
}

static struct view select_view(const struct volrend *v, long frame) {
    float angle = (float)frame * 3 * acosf(-1) / 180, sine = sinf(angle), cosine = cosf(angle);
    struct view view = {
        .right = {cosine, 0, -sine}, .down = {0, 1, 0}, .forward = {sine, 0, cosine}};
    for (int axis = 0; axis < 3; axis++)
        view.start[axis] = (float)(v->size - 1) / 2 -
                           (view.right[axis] + view.down[axis]) * (float)(v->image_size - 1) / 2 -
                           view.forward[axis] * (float)v->size;
    return view;
}

// Make a share of the shades, by Phong's model: light comes from above the viewer's left shoulder.
static void make_shades(struct volrend *v, const struct team *team, long id) {
    const struct view *view = &v->view;
    long facet = share_start(FACETS * FACETS, team->threads, id);
    long end = facet + share(FACETS * FACETS, team->threads, id);
    for (; facet < end; facet++) {
        float normal[3], lit = 0, gloss = 0;
        facet_normal(facet, normal);
        for (int axis = 0; axis < 3; axis++) {
            float light =
                view->forward[axis] * 0.8f + view->right[axis] * 0.36f + view->down[axis] * 0.48f;
            lit += normal[axis] * light;
            gloss += normal[axis] * (light + view->forward[axis]) * 0.527f;
        }
        lit = lit > 0 ? lit : 0;
        gloss = gloss > 0 ? gloss : 0;
        for (int power = 1; power < 16; power *= 2)
            gloss *= gloss;
        v->shade[facet] = 30 + 150 * lit + 70 * gloss;
    }
}

// Find the range of a ray's samples that are in the volume. Returns 0 if there are none.
static int clip(const struct volrend *v, const float *from, const float *step, long *first,
                long *last) {
    float low = 0, high = LONGEST, most = (float)(v->size - 1) - 0.001f;
    for (int axis = 0; axis < 3; axis++) {
        if (fabsf(step[axis]) < 1e-6f) {
            if (from[axis] < 0 || from[axis] > most)
                return 0;
            continue;
        }
        float a = -from[axis] / step[axis], b = (most - from[axis]) / step[axis];
        low = fmaxf(low, fminf(a, b));
        high = fminf(high, fmaxf(a, b));
    }
    *first = (long)ceilf(low);
    *last = (long)floorf(high);
    return *first <= *last;
}

// Return the samples from `at` to the end of its cell at a level, at least 1.
static long to_end(const float *at, const float *step, int level) {
    float nearest = LONGEST;
    for (int axis = 0; axis < 3; axis++) {
        if (fabsf(step[axis]) < 1e-6f)
            continue;
        long cell = (long)at[axis] >> level;
        float edge = (float)((step[axis] > 0 ? cell + 1 : cell) << level);
        nearest = fminf(nearest, (edge - at[axis]) / step[axis]);
    }
    return nearest < 1 ? 1 : (long)ceilf(nearest);
}

struct sample {
    float opacity, color;
};

static struct sample interpolate(const struct volrend *v, const float *at) {
    long x = (long)at[0], y = (long)at[1], z = (long)at[2], n = v->size;
    float part_x = at[0] - (float)x, part_y = at[1] - (float)y, part_z = at[2] - (float)z;
    const struct voxel *base = voxel_at(v, x, y, z);
    struct sample sum = {0, 0};
    for (int corner = 0; corner < 8; corner++) {
        const struct voxel *voxel =
            base + (corner & 1) + (corner & 2 ? n : 0) + (corner & 4 ? n * n : 0);
        float weight = (corner & 1 ? part_x : 1 - part_x) * (corner & 2 ? part_y : 1 - part_y) *
                       (corner & 4 ? part_z : 1 - part_z);
        sum.opacity += weight * (float)voxel->opacity;
        sum.color += weight * v->shade[voxel->normal];
    }
    sum.opacity /= 255;
    return sum;
}

// Return the pixel's brightness. Adds to *samples.
static uint8_t cast_ray(const struct volrend *v, long x, long y, uint64_t *samples) {
    const struct view *view = &v->view;
    float from[3], light = 0, through = 1;
    long i, last;
    int level = v->levels - 1;
    for (int axis = 0; axis < 3; axis++)
        from[axis] = view->start[axis] + (float)x * view->right[axis] + (float)y * view->down[axis];
    if (!clip(v, from, view->forward, &i, &last))
        return 0;
    while (i <= last && through > 1 - opaque) {
        float at[3];
        for (int axis = 0; axis < 3; axis++)
            at[axis] = from[axis] + (float)i * view->forward[axis];
        long cells = v->size >> level;
        long cell = (((long)at[2] >> level) * cells + ((long)at[1] >> level)) * cells +
                    ((long)at[0] >> level);
        if (!v->filled[level][cell]) {
            i += to_end(at, view->forward, level);
            level += level < v->levels - 1;
        } else if (level > 0) {
            level--;
        } else {
            struct sample sample = interpolate(v, at);
            if (sample.opacity > sight) {
                light += through * sample.opacity * sample.color;
                through *= 1 - sample.opacity;
            }
            ++*samples;
            i++;
        }
    }
    return (uint8_t)(light < 255 ? light : 255);
}

// Return the pixels whose tiles are in the queue of thread `index`.
static struct section section_of(const struct volrend *v, long threads, long index) {
    long rows = team_rows(threads), columns = threads / rows;
    struct section s = {.x = share_start(v->image_size, columns, index % columns),
                        .y = share_start(v->image_size, rows, index / columns)};
    s.x_end = s.x + share(v->image_size, columns, index % columns);
    s.y_end = s.y + share(v->image_size, rows, index / columns);
    s.tiles_x = (s.x_end - s.x + TILE - 1) / TILE;
    s.tiles = s.tiles_x * ((s.y_end - s.y + TILE - 1) / TILE);
    return s;
}

static void trace_tile(struct volrend *v, const struct section *s, long tile, uint64_t *samples) {
    long left = s->x + tile % s->tiles_x * TILE, top = s->y + tile / s->tiles_x * TILE;
    for (long y = top; y < top + TILE && y < s->y_end; y++)
        for (long x = left; x < left + TILE && x < s->x_end; x++)
            v->image[y * v->image_size + x] = cast_ray(v, x, y, samples);
}

static long take_tile(struct queue *q) {
    lock(&q->lock);
    long tile = atomic_load_explicit(&q->next, memory_order_relaxed);
    atomic_store_explicit(&q->next, tile + 1, memory_order_relaxed);
    unlock(&q->lock);
    return tile;
}

// Decrement a counter under its lock. Returns the new value.
static long decrement(pthread_mutex_t *mutex, atomic_long *counter) {
    lock(mutex);
    long left = atomic_load_explicit(counter, memory_order_relaxed) - 1;
    atomic_store_explicit(counter, left, memory_order_release);
    unlock(mutex);
    return left;
}

// Empty the thread's own queue, then steal until each thread has emptied its own.
static uint64_t trace(struct volrend *v, const struct team *team, long id) {
    uint64_t samples = 0;
    long from = id;
    while (atomic_load_explicit(&v->unfinished, memory_order_acquire)) {
        struct queue *q = v->queues + from;
        for (long tile; (tile = take_tile(q)) < q->section.tiles;)
            trace_tile(v, &q->section, tile, &samples);
        if (from == id)
            mine.spins += decrement(&v->unfinished_lock, &v->unfinished) > 0;
        do
            from = (from + 1) % team->threads;
        while (atomic_load_explicit(&v->queues[from].next, memory_order_relaxed) >=
                   v->queues[from].section.tiles &&
               atomic_load_explicit(&v->unfinished, memory_order_acquire));
    }
    return samples;
}

static void render(struct volrend *v, struct team *team, long id, long frame) {
    size_t pixels = (size_t)v->image_size * (size_t)v->image_size;
    size_t pixel = (size_t)share_start((long)pixels, team->threads, id);
    size_t end = pixel + (size_t)share((long)pixels, team->threads, id);
    barrier_wait(&team->barrier);
    memset(v->image + pixel, 0, end - pixel);
    if (id == 0)
        v->view = select_view(v, frame);
    barrier_wait(&team->barrier);
    atomic_store_explicit(&v->unshaded, team->threads, memory_order_relaxed);
    atomic_store_explicit(&v->unfinished, team->threads, memory_order_relaxed);
    atomic_store_explicit(&v->queues[id].next, 0, memory_order_relaxed);
    barrier_wait(&team->barrier);
    make_shades(v, team, id);
    mine.spins += decrement(&v->count_lock, &v->unshaded) > 0;
    while (atomic_load_explicit(&v->unshaded, memory_order_acquire))
        continue;
    uint64_t samples = trace(v, team, id), checksum = 0, brightness = 0;
    barrier_wait(&team->barrier);
    for (; pixel < end; pixel++) {
        checksum += random_at((uint64_t)frame, pixel * 256 + v->image[pixel]);
        brightness += v->image[pixel];
    }
    lock(&v->count_lock);
    v->samples += samples;
    v->checksum += checksum;
    v->brightness += brightness;
    unlock(&v->count_lock);
    barrier_wait(&team->barrier);
}

static void work(struct team *team, long id, void *shared) {
    struct volrend *v = shared;
    make_normals(v, team, id);
    barrier_wait(&team->barrier);
    make_opacities(v, team, id);
    barrier_wait(&team->barrier);
    for (int level = 0; level < v->levels; level++) {
        make_level(v, team, id, level);
        barrier_wait(&team->barrier);
    }
    for (long frame = 0; frame < v->frames; frame++)
        render(v, team, id, frame);
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("splash/volrend", classes, argc, argv);
    struct volrend v = {.size = sizes[s.class_index].size, .frames = sizes[s.class_index].frames};
    size_t voxels = (size_t)(v.size * v.size * v.size);
    v.image_size = v.size * 3 / 2;
    v.voxels = suite_memory(sizeof *v.voxels * voxels);
    v.shade = suite_memory(sizeof *v.shade * FACETS * FACETS);
    v.image = suite_memory((size_t)(v.image_size * v.image_size));
    v.queues = suite_memory(sizeof *v.queues * (size_t)s.threads);
    for (; v.size >> v.levels; v.levels++)
        v.filled[v.levels] = suite_memory(voxels >> (3 * v.levels));
    for (long i = 0; i < s.threads; i++) {
        pthread_mutex_init(&v.queues[i].lock, NULL);
        v.queues[i].section = section_of(&v, s.threads, i);
    }
    pthread_mutex_init(&v.count_lock, NULL);
    pthread_mutex_init(&v.unfinished_lock, NULL);
    make_volume(&v);
    do {
        v.checksum = v.brightness = v.samples = 0;
        team_run(&s, work, &v);
        double pixels = (double)(v.frames * v.image_size * v.image_size);
        suite_verify(&s, "the mean brightness", (double)v.brightness / pixels,
                     sizes[s.class_index].brightness, 1e-6);
        suite_checksum(&s, v.checksum);
        suite_count(&s, "samples", (long)v.samples);
    } while (suite_next(&s));
    while (v.levels)
        free(v.filled[--v.levels]);
    void *rest[] = {v.voxels, v.shade, v.image, v.queues};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        free(rest[i]);
    return suite_report(&s);
}
