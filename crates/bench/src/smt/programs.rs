//! Applications without a server: they compute, or read and write files.

use std::path::Path;

use anyhow::Context as _;

use super::super::command::{after, split, words};
use super::super::ml;
use super::super::python::python_with;
use super::super::workload::{self, Program};
use super::application::{Copy, Load, Work};
use super::catalogue::Setting;
use super::servers::program;

const DEDUP: Program = Program("parsec/dedup", &["-pthread", "-lm"]);
const VOLREND: Program = Program("splash/volrend", &["-pthread", "-lm"]);

/// Prepare a program of workloads/. The amount is rounds of `units` units each.
fn rounds(setting: &Setting, program: Program, units: f64) -> anyhow::Result<Copy> {
    let (program, threads) = (workload::compile(setting.session, program)?, setting.threads);
    let command = move |amount: u64| {
        let options = format!("--threads {threads} --rounds {amount} --class small");
        [words![program], split(&options)].concat()
    };
    Ok(Copy { server: None, load: Load::of(units, 1, command) })
}

pub fn dedup(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    const MEBIBYTES: f64 = 20.0;
    rounds(setting, DEDUP, MEBIBYTES)
}

pub fn volrend(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    const FRAMES: f64 = 8.0;
    rounds(setting, VOLREND, FRAMES)
}

/// Prepare ffmpeg, which transcodes a generated clip to H.264 in a loop. A unit of the amount is a
/// frame.
pub fn ffmpeg(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    let program = program("ffmpeg", "ffmpeg")?;
    // Both copies read the same clip.
    let clip = setting.session.scratch.path().join("clip.mpg");
    if !clip.exists() {
        let make = split(
            "-v error -nostdin -f lavfi -i testsrc2=size=640x360:rate=25 -frames:v 50 \
             -c:v mpeg2video -q:v 3",
        );
        setting.session.output(&[words![program], make, words![clip]].concat())?;
    }
    let threads = setting.threads;
    let command = move |amount: u64| {
        let input = format!("-v error -nostdin -threads {threads} -stream_loop -1 -i");
        let output = format!(
            "-frames:v {amount} -c:v libx264 -preset veryfast -threads {threads} -f null -"
        );
        [words![program], split(&input), words![clip], split(&output)].concat()
    };
    Ok(Copy { server: None, load: Load::of(1.0, 50, command) })
}

/// Paths of dbench's list of operations on Debian and Fedora.
const OPERATIONS: [&str; 2] = ["/usr/share/dbench/client.txt", "/usr/share/client.txt"];

/// Prepare dbench, with a process per client. The amount is seconds, and the work file operations.
pub fn dbench(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let program = program("dbench", "dbench")?;
    let list = OPERATIONS.into_iter().find(|p| Path::new(p).exists());
    let list = list.context("dbench's client.txt is not in any of the usual folders")?;
    let folder = setting.session.scratch.path().join(format!("dbench-{copy}"));
    std::fs::create_dir_all(&folder)?;
    let clients = setting.clients.to_string();
    let command = move |amount: u64| {
        words![program, "-t", amount.to_string(), "-D", folder, "-c", list, clients]
    };
    let load = Load { command: Box::new(command), work: Work::Printed(operations), first: 1 };
    Ok(Copy { server: None, load })
}

/// Sum the counts in dbench's table of operations.
fn operations(output: &str) -> Option<f64> {
    let table = output.lines().skip_while(|l| !l.trim_start().starts_with("----")).skip(1);
    let rows = table.take_while(|l| !l.trim().is_empty());
    rows.map(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok()).sum()
}

/// Prepare a Python program. `options`: its options, after which the amount follows.
fn python(
    setting: &Setting,
    modules: &str,
    packages: &str,
    (name, text): (&str, &str),
    options: &str,
    first: u64,
) -> anyhow::Result<Copy> {
    let lacks = format!("lacks {modules}: pip install {packages}, and pass --python PATH");
    let python = python_with(setting.session, setting.python.as_ref(), modules, &lacks)?;
    let program = setting.session.scratch.write(name, text)?;
    let command = [words![python, program], split(options)].concat();
    let command = move |amount: u64| after(&command, &words![amount.to_string()]);
    Ok(Copy { server: None, load: Load::of(1.0, first, command) })
}

/// Prepare a training with XGBoost. A unit of the amount is a tree.
pub fn xgboost(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    let options = format!("--library xgboost --threads {} --trees", setting.threads);
    let (modules, packages) = ("xgboost, sklearn", "xgboost-cpu scikit-learn");
    python(setting, modules, packages, ("ml.py", ml::PROGRAM), &options, 20)
}

const SPARK: &str = include_str!("../../../../workloads/spark.py");

/// Prepare a job of workloads/spark.py in Spark's local mode. A unit of the amount is a round.
fn spark(setting: &Setting, job: &str) -> anyhow::Result<Copy> {
    program("java", "default-jre-headless")?;
    let options = format!("--job {job} --threads {} --rounds", setting.threads);
    python(setting, "numpy, pyspark", "numpy pyspark", ("spark.py", SPARK), &options, 4)
}

pub fn kmeans(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    spark(setting, "kmeans")
}

pub fn pagerank(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    spark(setting, "pagerank")
}

pub fn terasort(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    spark(setting, "terasort")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dbench_counts_operations() {
        let text = "releasing clients\n\n Operation      Count    AvgLat    MaxLat\n \
                    ----------------------------------------\n NTCreateX      12084     0.113    \
                    17.968\n Close           9034     0.003     7.856\n\nThroughput 0 MB/sec\n";
        assert_eq!(operations(text), Some(21_118.0));
        assert_eq!(operations("nothing"), Some(0.0));
    }
}
