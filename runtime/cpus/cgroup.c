/* SPDX-License-Identifier: MIT
 *
 * /proc/self/cgroup names the process's group in each hierarchy. mountinfo says where hierarchies
 * are mounted, and which part of each. The group's folder is the mount point, followed by the
 * group's path below the mounted part. If the path is not below that part, the folder is the mount
 * point itself: a container may see its group's path on the host. Limits are those of the folder
 * and of its ancestors up to the mount point.
 *
 * inotify would not report changes: a container sees its cgroup through another superblock, with
 * other inodes, than its manager writes. So the files are read again (monitor/limit.c says how
 * often). mountinfo is read again only if the process's groups have changed.
 */
#include "cpus/cgroup.h"
#include "cpus/cpus.h"
#include "cpus/share.h"
#include "prim/hash.h"
#include "prim/prim.h"
#include "prim/text.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PATH = 4096, LINE = 8192 };

const char *cgroup_root = "";

enum hierarchy { CPU_V1, CPUSET_V1, V2, HIERARCHIES };

static struct group {
    char path[PATH];   /* in the hierarchy; "": none */
    char folder[PATH]; /* "": not mounted */
    size_t top;        /* length of the mount point in `folder` */
} group[HIERARCHIES];
static uint64_t last_quota; /* thousandths of a CPU; 0: none */
static uint32_t last_quota_group;

/* --- text ------------------------------------------------------------------------------------- */

/* Return whether `word` is one of the comma-separated words of `list`. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p;) {
        size_t k = 0;
        while (p[k] && p[k] != ',')
            k++;
        if (k == n && !memcmp(p, word, n))
            return true;
        p += p[k] ? k + 1 : k;
    }
    return false;
}

/* Cut the next word off *p at `end`. Returns the word, or NULL if there is none. */
static char *cut(char **p, char end)
{
    char *word = *p;
    if (!word)
        return NULL;
    char *q = word;
    while (*q && *q != end)
        q++;
    *p = *q ? q + 1 : NULL;
    *q = 0;
    return word;
}

/* Replace octal escapes such as \040, in place. */
static void unescape(char *s)
{
    char *to = s;
    for (; *s; to++) {
        if (s[0] == '\\' && is_digit(s[1]) && is_digit(s[2]) && is_digit(s[3])) {
            *to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 4;
        } else {
            *to = *s++;
        }
    }
    *to = 0;
}

/* Concatenate a and b. `to` may be a. Returns false if the result does not fit. */
static bool join(char *to, size_t size, const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n + m >= size)
        return false;
    memmove(to, a, n);
    memmove(to + n, b, m + 1);
    return true;
}

/* --- files ------------------------------------------------------------------------------------ */

static int open_file(const char *path)
{
    static char full[PATH];
    return join(full, sizeof full, cgroup_root, path) ? prim_open(full, O_RDONLY | O_CLOEXEC) : -1;
}

static struct {
    int fd;
    size_t at, used;
    char text[LINE + 1];
} reader;

static bool lines_of(const char *path)
{
    reader.fd = open_file(path);
    reader.at = reader.used = 0;
    return reader.fd >= 0;
}

/* Return the next line; NULL at the end, after closing the file. Skips lines that do not fit. */
static char *line(void)
{
    for (bool whole = true;;) {
        for (size_t i = reader.at; i < reader.used; i++)
            if (reader.text[i] == '\n') {
                char *found = reader.text + reader.at;
                reader.text[i] = 0;
                reader.at = i + 1;
                if (whole)
                    return found;
                whole = true; /* this was the end of a line that does not fit */
                i = reader.at - 1;
            }
        memmove(reader.text, reader.text + reader.at, reader.used - reader.at);
        reader.used -= reader.at;
        reader.at = 0;
        if (reader.used == LINE) {
            whole = false;
            reader.used = 0;
        }
        long n = prim_read(reader.fd, reader.text + reader.used, LINE - reader.used);
        if (n <= 0) {
            prim_close(reader.fd);
            return NULL;
        }
        reader.used += (size_t)n;
    }
}

/* Return the path of `name` in the first folder_length bytes of `folder`, valid until the next
 * call. Returns NULL if it is too long. */
static const char *path_in(const char *folder, size_t folder_length, const char *name)
{
    static char path[PATH];
    if (folder_length >= sizeof path)
        return NULL;
    memcpy(path, folder, folder_length);
    path[folder_length] = 0;
    return join(path, sizeof path, path, name) ? path : NULL;
}

/* Read a file of `folder`, NUL-terminated. Returns its length, or -1. */
static long read_small(const char *folder, size_t folder_length, const char *name, char *to,
                       size_t size)
{
    const char *path = path_in(folder, folder_length, name);
    int fd = path ? open_file(path) : -1;
    if (fd < 0)
        return -1;
    long n = prim_read(fd, to, size - 1);
    prim_close(fd);
    if (n < 0)
        return -1;
    to[n] = 0;
    return n;
}

/* --- where the groups are --------------------------------------------------------------------- */

static enum hierarchy hierarchy_of(const char *controllers)
{
    if (!*controllers)
        return V2;
    return has_word(controllers, "cpu")      ? CPU_V1
           : has_word(controllers, "cpuset") ? CPUSET_V1
                                             : HIERARCHIES;
}

static void group_is(struct group *g, const char *path, bool *changed)
{
    if (same(g->path, path) || strlen(path) >= sizeof g->path)
        return;
    memcpy(g->path, path, strlen(path) + 1);
    *changed = true;
}

/* Read the groups of the process. Sets *changed if any has changed. Returns false if /proc cannot
 * be read. */
static bool read_groups(bool *changed)
{
    if (!lines_of("/proc/self/cgroup"))
        return false;
    for (char *p; (p = line()) != NULL;) {
        const char *id = cut(&p, ':'), *controllers = cut(&p, ':');
        if (!id || !controllers || !p)
            continue;
        enum hierarchy h = hierarchy_of(controllers);
        if (h != HIERARCHIES)
            group_is(&group[h], p, changed);
        if (h == CPU_V1 && has_word(controllers, "cpuset"))
            group_is(&group[CPUSET_V1], p, changed);
    }
    return true;
}

static const char *below(const char *path, const char *root)
{
    size_t n = strlen(root);
    if (n == 1)
        return path; /* root is "/" */
    return !memcmp(path, root, n < strlen(path) ? n : strlen(path)) && strlen(path) >= n &&
                   (!path[n] || path[n] == '/')
               ? path + n
               : NULL;
}

/* Use the first mount that contains the group, or else the first of its hierarchy. */
static void mount_is(struct group *g, const char *root, const char *point)
{
    const char *rest = *g->path ? below(g->path, root) : NULL;
    if (!*g->path || (*g->folder && !rest) || strlen(point) >= sizeof g->folder)
        return;
    if (*g->folder && g->top != strlen(g->folder))
        return; /* already has a mount that contains it */
    if (!join(g->folder, sizeof g->folder, point, rest && !same(rest, "/") ? rest : ""))
        return;
    g->top = strlen(point);
}

static void read_mounts(void)
{
    for (int h = 0; h < HIERARCHIES; h++)
        group[h].folder[0] = 0;
    if (!lines_of("/proc/self/mountinfo"))
        return;
    for (char *p; (p = line()) != NULL;) {
        char *root = NULL, *point = NULL, *word;
        for (int i = 0; (word = cut(&p, ' ')) != NULL && !same(word, "-"); i++) {
            root = i == 3 ? word : root;
            point = i == 4 ? word : point;
        }
        const char *kind = cut(&p, ' ');
        cut(&p, ' ');
        if (!kind || !root || !point)
            continue;
        unescape(root);
        unescape(point);
        if (same(kind, "cgroup2"))
            mount_is(&group[V2], root, point);
        if (!same(kind, "cgroup") || !p)
            continue;
        if (has_word(p, "cpu"))
            mount_is(&group[CPU_V1], root, point);
        if (has_word(p, "cpuset"))
            mount_is(&group[CPUSET_V1], root, point);
    }
}

static bool find_groups(void)
{
    bool changed = false;
    if (!read_groups(&changed))
        return false;
    if (changed)
        read_mounts();
    return true;
}

/* --- limits ----------------------------------------------------------------------------------- */

/* Parse a number and advance *p. Returns false if there is none. */
static bool number(const char **p, uint64_t *n)
{
    if (!is_digit(**p))
        return false;
    for (*n = 0; is_digit(**p); ++*p)
        *n = *n > (1ull << 58) ? *n : *n * 10 + (uint64_t)(**p - '0');
    return true;
}

/* Return the quota in thousandths of a CPU, rounded up. */
static uint64_t in_thousandths(uint64_t quota, uint64_t period)
{
    uint64_t cpus = quota / period, rest = quota % period;
    return cpus * 1000 + (rest * 1000 + period - 1) / period;
}

/* Return the group's quota in thousandths of a CPU; 0 if there is none, or the file is
 * malformed. */
static uint64_t quota_v2(const char *folder, size_t n)
{
    char text[64];
    uint64_t quota, period;
    const char *p = text;
    if (read_small(folder, n, "/cpu.max", text, sizeof text) <= 0 || !number(&p, &quota) ||
        *p++ != ' ' || !number(&p, &period) || !period)
        return 0;
    return in_thousandths(quota, period);
}

static uint64_t quota_v1(const char *folder, size_t n)
{
    char text[64];
    uint64_t quota, period;
    const char *p = text;
    if (read_small(folder, n, "/cpu.cfs_quota_us", text, sizeof text) <= 0 || !number(&p, &quota))
        return 0;
    p = text;
    if (read_small(folder, n, "/cpu.cfs_period_us", text, sizeof text) <= 0 ||
        !number(&p, &period) || !period)
        return 0;
    return in_thousandths(quota, period);
}

/* Return a hash that is not 0. */
static uint32_t hash(const void *bytes, size_t n)
{
    const uint8_t *byte = bytes;
    uint64_t h = HASH_BEGIN;
    for (size_t i = 0; i < n; i++)
        h = hash_add(h, byte[i]);
    return (uint32_t)hash_end(h) | 1;
}

/* Return an identity of the group whose folder is the first n bytes of `folder`, not 0. It is made
 * of the inode number: groups of different containers may have the same path, and a group has a
 * device number for each cgroup namespace. */
static uint32_t identity(const char *folder, size_t n)
{
    static char full[PATH];
    struct stat about;
    const char *path = path_in(folder, n, "");
    if (!path || !join(full, sizeof full, cgroup_root, path) ||
        prim_syscall4(SYS_newfstatat, AT_FDCWD, full, &about, 0))
        return hash(folder, n);
    return hash(&about.st_ino, sizeof about.st_ino);
}

/* Lower *least to the smallest quota of g and its ancestors. *least: 0, or a quota found
 * elsewhere. */
static void least_quota(const struct group *g, uint64_t (*quota)(const char *, size_t),
                        uint64_t *least)
{
    if (!*g->folder)
        return;
    for (size_t n = strlen(g->folder);;) {
        uint64_t q = quota(g->folder, n);
        if (q && (!*least || q < *least)) {
            *least = q;
            last_quota_group = identity(g->folder, n);
        }
        if (n <= g->top)
            return;
        while (n > g->top && g->folder[n - 1] != '/')
            n--;
        n -= n > g->top; /* the slash */
    }
}

uint32_t cgroup_quota_cpus(void)
{
    if (find_groups()) {
        last_quota = 0;
        last_quota_group = 0;
        least_quota(&group[CPU_V1], quota_v1, &last_quota);
        least_quota(&group[V2], quota_v2, &last_quota);
    }
    uint64_t cpus = (last_quota + 999) / 1000;
    return cpus > UINT32_MAX ? UINT32_MAX : (uint32_t)cpus;
}

uint32_t cgroup_quota_whole(void)
{
    uint64_t cpus = last_quota / 1000;
    return cpus > UINT32_MAX ? UINT32_MAX : cpus ? (uint32_t)cpus : 1;
}

uint32_t cgroup_quota_group(void) { return last_quota_group; }

/* --- weights ---------------------------------------------------------------------------------- */

enum { WEIGHT = 100, WEIGHT_MAX = 10000, SHARES = 1024 /* default in version 1 */ };

static uint32_t weight_of(uint64_t n)
{
    return n < 1 ? 1 : n > WEIGHT_MAX ? WEIGHT_MAX : (uint32_t)n;
}

/* Read the autogroup of the session, "/autogroup-7 nice -5". Sets *weight. Returns a hash of its
 * name; 0 if there is none. */
static uint32_t session_weight(uint32_t *weight)
{
    static const char on[] = "/proc/sys/kernel/sched_autogroup_enabled", about[] = "/proc/self";
    char text[64], *rest = text;
    if (read_small("", 0, on, text, sizeof text) <= 0 || *text != '1' ||
        read_small(about, sizeof about - 1, "/autogroup", text, sizeof text) <= 0)
        return 0;
    const char *name = cut(&rest, ' ');
    cut(&rest, ' ');
    const char *p = rest;
    bool below = p && *p == '-';
    uint64_t nice;
    if (!p || (p += below, !number(&p, &nice)))
        return 0;
    uint32_t w = share_weight(below ? -(int32_t)nice : (int32_t)nice);
    *weight = weight_of((uint64_t)w * WEIGHT / SHARES);
    return hash(name, strlen(name));
}

uint32_t cgroup_weight(uint32_t *weight)
{
    char text[64];
    const char *p = text;
    uint64_t n;
    bool v1 = *group[CPU_V1].path;
    const struct group *g = &group[v1 ? CPU_V1 : V2];
    bool root = !*g->path || same(g->path, "/");
    *weight = WEIGHT;
    if (root && v1) /* its cpu.shares mean nothing */
        return session_weight(weight);
    if (*g->folder &&
        read_small(g->folder, strlen(g->folder), v1 ? "/cpu.shares" : "/cpu.weight", text,
                   sizeof text) > 0 &&
        number(&p, &n))
        *weight = weight_of(v1 ? n * WEIGHT / SHARES : n);
    else if (root)
        return session_weight(weight);
    return *g->folder ? identity(g->folder, strlen(g->folder)) : hash(g->path, strlen(g->path));
}

/* --- cpusets ---------------------------------------------------------------------------------- */

/* Parse a list such as "0-3,8". Returns false if it is malformed. */
static bool parse_list(const char *p, struct cpu_mask *m)
{
    memset(m, 0, sizeof *m);
    for (;;) {
        uint64_t a, b;
        if (!number(&p, &a))
            return false;
        b = a;
        if (*p == '-' && (p++, !number(&p, &b)))
            return false;
        for (uint64_t i = a; i <= b && i < CPU_MASK_WORDS * 64; i++)
            m->word[i / 64] |= 1ull << (i % 64);
        if (*p != ',')
            return true;
        p++;
    }
}

bool cgroup_cpuset(struct cpu_mask *m)
{
    static char text[LINE];
    const struct {
        const struct group *g;
        const char *file;
    } place[] = {{&group[V2], "/cpuset.cpus.effective"},
                 {&group[CPUSET_V1], "/cpuset.effective_cpus"}};
    for (unsigned i = 0; i < 2; i++)
        if (*place[i].g->folder &&
            read_small(place[i].g->folder, strlen(place[i].g->folder), place[i].file, text,
                       sizeof text) > 0 &&
            parse_list(text, m))
            return true;
    return read_small("", 0, "/sys/devices/system/cpu/online", text, sizeof text) > 0 &&
           parse_list(text, m);
}
