/* SPDX-License-Identifier: MIT */
// LU factorization of a dense matrix, as LU (contiguous blocks) of SPLASH-2: Woo, Ohara, Torrie,
// Singh, Gupta, "The SPLASH-2 Programs: Characterization and Methodological Considerations", ISCA
// 1995; Woo, Singh, Hennessy, "The Performance Advantages of Integrating Block Data Transfer in
// Cache-Coherent Multiprocessors", ASPLOS 1994. Blocks are of 16x16 elements, each contiguous in
// memory. There is no pivoting: the diagonal dominates.
//
// Synchronization: threads form a grid, which is repeated over the matrix to assign its blocks.
// Each step has 2 barriers. The first follows the factoring of the diagonal block by its owner,
// while all others wait. The second follows the update of the block row and column by their owners.
// The update of the interior needs none. The interior shrinks from step to step, so fewer and fewer
// threads own any of its blocks. The program has 2 barriers before its steps and 1 after.
//
// Differences: the matrix is a multiple of blocks; all blocks are in one array.
#include "parmacs.h"

enum { BLOCK = 16 };

static const char *const classes[] = {"small", "test", "medium", "large", NULL};
static const long sizes[] = {1280, 128, 2240, 3584};

typedef double block[BLOCK][BLOCK];

struct matrix {
    long size, blocks; // elements and blocks per side
    block *block;      // row by row
};

static block *block_at(const struct matrix *m, long i, long j) {
    return m->block + i * m->blocks + j;
}

static double element(long size, long i, long j) {
    return uniform_at(3, (uint64_t)(i * size + j)) + (i == j ? (double)size : 0);
}

static void make_block(const struct matrix *m, long i, long j) {
    block *to = block_at(m, i, j);
    for (long row = 0; row < BLOCK; row++)
        for (long column = 0; column < BLOCK; column++)
            (*to)[row][column] = element(m->size, i * BLOCK + row, j * BLOCK + column);
}

// Factor a block: the lower triangle becomes L, whose diagonal is 1, the upper one U.
static void factor(block *a) {
    for (int k = 0; k < BLOCK; k++)
        for (int i = k + 1; i < BLOCK; i++) {
            double scale = (*a)[i][k] /= (*a)[k][k];
            for (int j = k + 1; j < BLOCK; j++)
                (*a)[i][j] -= scale * (*a)[k][j];
        }
}

// a = a * U^-1, where U is the diagonal block's.
static void divide_right(block *a, const block *diagonal) {
    for (int i = 0; i < BLOCK; i++)
        for (int k = 0; k < BLOCK; k++) {
            double scale = (*a)[i][k] /= (*diagonal)[k][k];
            for (int j = k + 1; j < BLOCK; j++)
                (*a)[i][j] -= scale * (*diagonal)[k][j];
        }
}

// a = L^-1 * a, where L is the diagonal block's.
static void divide_left(block *a, const block *diagonal) {
    for (int k = 0; k < BLOCK; k++)
        for (int i = k + 1; i < BLOCK; i++) {
            double scale = (*diagonal)[i][k];
            for (int j = 0; j < BLOCK; j++)
                (*a)[i][j] -= scale * (*a)[k][j];
        }
}

// a -= left * right
static void subtract_product(block *a, const block *left, const block *right) {
    for (int i = 0; i < BLOCK; i++) {
        double row[BLOCK];
        memcpy(row, (*a)[i], sizeof row);
        for (int k = 0; k < BLOCK; k++) {
            double scale = (*left)[i][k];
            for (int j = 0; j < BLOCK; j++)
                row[j] -= scale * (*right)[k][j];
        }
        memcpy((*a)[i], row, sizeof row);
    }
}

// Return the first index from `least` on that has `remainder` modulo `stride`.
static long first_from(long least, long remainder, long stride) {
    return least + ((remainder - least) % stride + stride) % stride;
}

static void work(struct team *team, long id, void *shared) {
    const struct matrix *m = shared;
    long rows = team_rows(team->threads), columns = team->threads / rows;
    long row = id / columns, column = id % columns;
    barrier_wait(&team->barrier);
    for (long i = row; i < m->blocks; i += rows)
        for (long j = column; j < m->blocks; j += columns)
            make_block(m, i, j);
    barrier_wait(&team->barrier);
    for (long k = 0; k < m->blocks; k++) {
        block *diagonal = block_at(m, k, k);
        long first_row = first_from(k + 1, row, rows);
        long first_column = first_from(k + 1, column, columns);
        if (k % rows == row && k % columns == column)
            factor(diagonal);
        barrier_wait(&team->barrier);
        if (k % columns == column)
            for (long i = first_row; i < m->blocks; i += rows)
                divide_right(block_at(m, i, k), diagonal);
        if (k % rows == row)
            for (long j = first_column; j < m->blocks; j += columns)
                divide_left(block_at(m, k, j), diagonal);
        barrier_wait(&team->barrier);
        for (long i = first_row; i < m->blocks; i += rows)
            for (long j = first_column; j < m->blocks; j += columns)
                subtract_product(block_at(m, i, j), block_at(m, i, k), block_at(m, k, j));
    }
    barrier_wait(&team->barrier);
}

// to = upper triangle, or lower one with ones on the diagonal, times `from`.
static void multiply(const struct matrix *m, int upper, double *to, const double *from) {
    for (long i = 0; i < m->size; i++) {
        to[i] = upper ? 0 : from[i];
        for (long j = upper ? i : 0; j < (upper ? m->size : i); j++)
            to[i] += (*block_at(m, i / BLOCK, j / BLOCK))[i % BLOCK][j % BLOCK] * from[j];
    }
}

// Return the largest element of L * U * x - A * x, relative to the largest of A * x.
static double residual(const struct matrix *m) {
    size_t bytes = sizeof(double) * (size_t)m->size;
    double *x = suite_memory(bytes), *half = suite_memory(bytes), *product = suite_memory(bytes);
    double worst = 0, largest = 0;
    for (long i = 0; i < m->size; i++)
        x[i] = uniform_at(4, (uint64_t)i);
    multiply(m, 1, half, x);
    multiply(m, 0, product, half);
    for (long i = 0; i < m->size; i++) {
        double sum = 0;
        for (long j = 0; j < m->size; j++)
            sum += element(m->size, i, j) * x[j];
        worst = fmax(worst, fabs(product[i] - sum));
        largest = fmax(largest, fabs(sum));
    }
    free(x);
    free(half);
    free(product);
    return worst / largest;
}

int main(int argc, char **argv) {
    struct suite s = suite_parse("splash/lu_cb", classes, argc, argv);
    struct matrix m = {.size = sizes[s.class_index], .blocks = sizes[s.class_index] / BLOCK};
    size_t bytes = sizeof *m.block * (size_t)(m.blocks * m.blocks);
    m.block = suite_memory(bytes);
    do {
        team_run(&s, work, &m);
        suite_verify(&s, "the residual", residual(&m), 0, 1e-12);
        suite_checksum(&s, suite_hash(0, m.block, bytes));
    } while (suite_next(&s));
    free(m.block);
    return suite_report(&s);
}
