#!/usr/bin/env python3
"""Runs a job in Spark's local mode and prints one line of JSON.

    spark.py --job pagerank --threads 4 --rounds 3

kmeans clusters points (MLlib), pagerank ranks the pages of a random graph, terasort sorts records
of 100 bytes by random keys of 10. A round is an iteration of the first two, and a whole sort of the
last. The time of the session's start, and of making the data, does not count.
"""

import argparse
import json
import os
import sys
import time

PAGES, LINKS = 2_000, 20_000
POINTS, CLUSTERS = 20_000, 8
RECORDS = 50_000


def arguments():
    parser = argparse.ArgumentParser(description="Run a job in Spark's local mode.")
    parser.add_argument("--job", choices=["kmeans", "pagerank", "terasort"], required=True)
    parser.add_argument(
        "--threads",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="Spark's tasks at a time (default: one a CPU)",
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="(default: 3)")
    args = parser.parse_args()
    for name in ("threads", "rounds"):
        if getattr(args, name) < 1:
            parser.error(f"--{name} must be at least 1")
    return args


def kmeans(spark, functions):
    from pyspark.ml.clustering import KMeans
    from pyspark.ml.feature import VectorAssembler

    columns = [functions.randn(i).alias(f"x{i}") for i in range(8)]
    points = spark.range(POINTS).select(*columns)
    points = VectorAssembler(inputCols=points.columns, outputCol="features").transform(points)
    points = points.select("features").cache()
    points.count()

    def run(rounds):
        # With a tolerance of 0 all iterations run.
        model = KMeans(k=CLUSTERS, maxIter=rounds, tol=0.0, seed=1).fit(points)
        return len(model.clusterCenters()) == CLUSTERS

    return run


def pagerank(spark, functions):
    page = (functions.rand(1) * PAGES).cast("int")
    # Each page has a link: no rank is lost.
    pages = spark.range(PAGES).select(functions.col("id").cast("int").alias("page"))
    links = spark.range(LINKS).select(page.alias("page")).union(pages)
    links = links.withColumn("to", (functions.rand(2) * PAGES).cast("int"))
    degrees = links.groupBy("page").agg(functions.count("to").alias("degree"))
    links = links.join(degrees, "page").cache()
    links.count()

    def run(rounds):
        ranks = pages.withColumn("rank", functions.lit(1.0))
        for _ in range(rounds):
            given = links.join(ranks, "page").select(
                functions.col("to").alias("page"),
                (functions.col("rank") / functions.col("degree")).alias("part"),
            )
            sums = given.groupBy("page").agg(functions.sum("part").alias("sum"))
            ranks = pages.join(sums, "page", "left").select(
                "page",
                (0.15 + 0.85 * functions.coalesce("sum", functions.lit(0.0))).alias("rank"),
            )
            ranks = ranks.localCheckpoint()
        total = ranks.agg(functions.sum("rank")).first()[0]
        return abs(total - PAGES) < 1e-6 * PAGES

    return run


def terasort(spark, functions):
    key = functions.substring(functions.sha1(functions.col("id").cast("string")), 1, 10)
    value = functions.rpad(functions.col("id").cast("string"), 90, "x")
    records = spark.range(RECORDS).select(key.alias("key"), value.alias("value")).cache()
    records.count()

    def run(rounds):
        for _ in range(rounds):
            records.orderBy("key").write.format("noop").mode("overwrite").save()
        smallest = records.agg(functions.min("key")).first()[0]
        return records.orderBy("key").first()["key"] == smallest

    return run


JOBS = {"kmeans": kmeans, "pagerank": pagerank, "terasort": terasort}


def main():
    args = arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession, functions

    builder = SparkSession.builder.master(f"local[{args.threads}]").appName("lissom")
    for name, value in (
        ("spark.ui.enabled", "false"),
        ("spark.sql.shuffle.partitions", str(args.threads)),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.log.level", "ERROR"),
    ):
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    run = JOBS[args.job](spark, functions)
    started = time.monotonic()
    is_right = run(args.rounds)
    ended = time.monotonic()
    gateway = spark.sparkContext._gateway
    spark.stop()
    # The JVM exits when its standard input closes. Wait for it, so that its CPU time counts for
    # this process.
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    if not is_right:
        sys.exit(f"spark.py: {args.job}: the result is wrong")
    print(
        json.dumps(
            {
                "job": args.job,
                "threads": args.threads,
                "rounds": args.rounds,
                "seconds": round(ended - started, 3),
                "reported_at": round(ended, 3),
            }
        )
    )


if __name__ == "__main__":
    main()
