#!/usr/bin/env python3
"""Trains a gradient-boosting model on made-up data and prints one line of JSON.

    ml.py --library histgb --threads 32

All libraries split each of some ten thousand small steps among OpenMP threads, with a barrier at both
ends of each: the kind of program that suffers most from having more threads than cores.
"""

import argparse
import hashlib
import json
import os
import time


def arguments():
    parser = argparse.ArgumentParser(description="Train a gradient-boosting model on made-up data.")
    parser.add_argument(
        "--library",
        choices=["histgb", "lightgbm", "xgboost"],
        default="histgb",
        help="scikit-learn's HistGradientBoosting, LightGBM or XGBoost (default: histgb)",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="OpenMP threads (default: one a CPU)",
    )
    parser.add_argument(
        "--rows", type=int, default=20_000, metavar="N", help="samples (default: 20000)"
    )
    parser.add_argument(
        "--columns", type=int, default=20, metavar="N", help="features (default: 20)"
    )
    parser.add_argument("--trees", type=int, default=100, metavar="N", help="trees (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the data (default: 1)")
    args = parser.parse_args()
    for name in ("threads", "rows", "columns", "trees"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return args


def model(args):
    """The untrained model. Imports are slow and come late: OMP_NUM_THREADS must be set by then."""
    if args.library == "lightgbm":
        import lightgbm

        return lightgbm.LGBMRegressor(
            n_estimators=args.trees,
            n_jobs=args.threads,
            verbose=-1,
            force_row_wise=True,
            random_state=args.seed,
        )
    if args.library == "xgboost":
        import xgboost

        return xgboost.XGBRegressor(
            n_estimators=args.trees,
            n_jobs=args.threads,
            tree_method="hist",
            random_state=args.seed,
        )
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        max_iter=args.trees, early_stopping=False, random_state=args.seed
    )


def main():
    args = arguments()
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import numpy

    random = numpy.random.default_rng(args.seed)
    x = random.normal(size=(args.rows, args.columns))
    y = (
        x[:, 0] * 2
        + numpy.sin(x[:, 1 % args.columns] * 3)
        + random.normal(scale=0.1, size=args.rows)
    )

    regressor = model(args)
    started = time.perf_counter()
    regressor.fit(x, y)
    seconds = time.perf_counter() - started
    reported_at = time.monotonic()

    predicted = regressor.predict(x)
    error = float(numpy.sqrt(numpy.mean((predicted - y) ** 2)))
    # Floating-point sums depend on the order of the threads, natively too. So digits of the
    # checksum may differ between runs although the error does not.
    checksum = hashlib.sha256(numpy.round(predicted, 3).tobytes()).hexdigest()[:16]
    print(
        json.dumps(
            {
                "library": args.library,
                "threads": args.threads,
                "rows": args.rows,
                "trees": args.trees,
                "seconds": round(seconds, 3),
                "reported_at": round(reported_at, 3),
                "error": round(error, 4),
                "checksum": checksum,
            }
        )
    )


if __name__ == "__main__":
    main()
