/* SPDX-License-Identifier: MIT */
// The 5x5 blocks of the implicit operators of NPB LU and BT: Jacobians of the fluxes, and the
// solution of a block's equations.
#ifndef LISSOM_WORKLOADS_NPB_NAVIER_BLOCK_H
#define LISSOM_WORKLOADS_NPB_NAVIER_BLOCK_H

#include "navier.h"

typedef double block[5][5];

// Add a multiple of the Jacobian of the convective flux in direction d, at one point.
INLINE void add_convection(double (*b)[5], int d, const double *u, const struct flow *f,
                           double scale) {
    const int x = 1 + d, y = 1 + (d + 1) % 3, z = 1 + (d + 2) % 3; // rows of the momenta
    const double vx = f->velocity[x - 1], vy = f->velocity[y - 1], vz = f->velocity[z - 1];
    const double heat = k1 * u[4] * f->inverse;
    b[0][x] += scale;
    b[x][0] += scale * (k2 * f->kinetic - vx * vx);
    b[x][x] += scale * (2 - k2) * vx;
    b[x][y] -= scale * k2 * vy;
    b[x][z] -= scale * k2 * vz;
    b[x][4] += scale * k2;
    b[y][0] -= scale * vx * vy;
    b[y][x] += scale * vy;
    b[y][y] += scale * vx;
    b[z][0] -= scale * vx * vz;
    b[z][x] += scale * vz;
    b[z][z] += scale * vx;
    b[4][0] += scale * (2 * k2 * f->kinetic - heat) * vx;
    b[4][x] += scale * (heat - k2 * (vx * vx + f->kinetic));
    b[4][y] -= scale * k2 * vx * vy;
    b[4][z] -= scale * k2 * vx * vz;
    b[4][4] += scale * k1 * vx;
}

// Add a multiple of the Jacobian of viscosity and diffusion in direction d, at one point.
INLINE void add_viscosity(double (*b)[5], int d, const double *u, const struct flow *f,
                          double scale) {
    const int x = 1 + d, y = 1 + (d + 1) % 3, z = 1 + (d + 2) % 3;
    const double vx = f->velocity[x - 1], vy = f->velocity[y - 1], vz = f->velocity[z - 1];
    const double along = 4.0 / 3, v = scale * k34 * f->inverse, diffuse = scale * diffusion[d];
    b[0][0] += diffuse;
    b[x][0] -= v * along * vx;
    b[x][x] += v * along + diffuse;
    b[y][0] -= v * vy;
    b[y][y] += v + diffuse;
    b[z][0] -= v * vz;
    b[z][z] += v + diffuse;
    b[4][0] -=
        v * ((along - k15) * vx * vx + (1 - k15) * (vy * vy + vz * vz) + k15 * u[4] * f->inverse);
    b[4][x] += v * (along - k15) * vx;
    b[4][y] += v * (1 - k15) * vy;
    b[4][z] += v * (1 - k15) * vz;
    b[4][4] += v * k15 + diffuse;
}

// Set `b` to the derivative of a time step at a point by the state of its neighbour p in direction
// d. side: -1 if the neighbour comes before the point, 1 if after.
INLINE void neighbour_block(double (*b)[5], const struct grid *g, int d, int side, long p) {
    memset(b, 0, sizeof(block));
    add_convection(b, d, g->u[p], &g->flow[p], side * g->step * g->first);
    add_viscosity(b, d, g->u[p], &g->flow[p], -g->step * g->second);
}

INLINE void identity_block(double (*b)[5]) {
    memset(b, 0, sizeof(block));
    for (int m = 0; m < 5; m++)
        b[m][m] = 1;
}

// Replace `right`, 5 rows of `columns` columns, by inverse(b) right. Destroys b. Gaussian
// elimination without pivoting: the blocks are dominated by their diagonals.
INLINE void solve_block(double (*b)[5], double *right, int columns) {
    for (int pivot = 0; pivot < 5; pivot++) {
        const double inverse = 1 / b[pivot][pivot];
        for (int c = pivot + 1; c < 5; c++)
            b[pivot][c] *= inverse;
        for (int c = 0; c < columns; c++)
            right[pivot * columns + c] *= inverse;
        for (int row = pivot + 1; row < 5; row++) {
            const double factor = b[row][pivot];
            for (int c = pivot + 1; c < 5; c++)
                b[row][c] -= factor * b[pivot][c];
            for (int c = 0; c < columns; c++)
                right[row * columns + c] -= factor * right[pivot * columns + c];
        }
    }
    for (int row = 3; row >= 0; row--)
        for (int below = row + 1; below < 5; below++)
            for (int c = 0; c < columns; c++)
                right[row * columns + c] -= b[row][below] * right[below * columns + c];
}

#endif
