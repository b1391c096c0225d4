//! Applications without a server: they compute, or read and write files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::ml;
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
        let mut command: Vec<OsString> = vec![program.clone().into()];
        for (name, value) in [("--threads", u64::from(threads)), ("--rounds", amount)] {
            command.extend([name.into(), value.to_string().into()]);
        }
        command.extend(["--class".into(), "small".into()]);
        command
    };
    let load = Load { command: Box::new(command), work: Work::Asked(units), first: 1 };
    Ok(Copy { server: None, load })
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
    let words = |list: &[&str]| list.iter().map(OsString::from).collect::<Vec<_>>();
    if !clip.exists() {
        let mut make: Vec<OsString> = vec![program.clone().into()];
        make.extend(words(&["-v", "error", "-nostdin", "-f", "lavfi", "-i"]));
        make.extend(words(&["testsrc2=size=640x360:rate=25", "-frames:v", "50"]));
        make.extend(words(&["-c:v", "mpeg2video", "-q:v", "3"]));
        make.push(clip.clone().into());
        setting.session.output(&make)?;
    }
    let threads = setting.threads.to_string();
    let command = move |amount: u64| {
        let mut command: Vec<OsString> = vec![program.clone().into()];
        command.extend(words(&["-v", "error", "-nostdin", "-threads", &threads]));
        command.extend(words(&["-stream_loop", "-1", "-i"]));
        command.push(clip.clone().into());
        command.extend(words(&["-frames:v", &amount.to_string(), "-c:v", "libx264"]));
        command.extend(words(&["-preset", "veryfast", "-threads", &threads, "-f", "null", "-"]));
        command
    };
    let load = Load { command: Box::new(command), work: Work::Asked(1.0), first: 50 };
    Ok(Copy { server: None, load })
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
        let mut command: Vec<OsString> = vec![program.clone().into(), "-t".into()];
        command.extend([amount.to_string().into(), "-D".into(), folder.clone().into()]);
        command.extend(["-c".into(), list.into(), clients.clone().into()]);
        command
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

/// Prepare a training with XGBoost. A unit of the amount is a tree.
pub fn xgboost(setting: &Setting, _copy: usize) -> anyhow::Result<Copy> {
    let python = python(setting, "xgboost, sklearn", "xgboost-cpu scikit-learn")?;
    let program = setting.session.scratch.write("ml.py", ml::PROGRAM)?;
    let threads = setting.threads.to_string();
    let command = move |amount: u64| {
        let mut command: Vec<OsString> = vec![python.clone().into(), program.clone().into()];
        command.extend(["--library", "xgboost", "--threads", &threads].map(OsString::from));
        command.extend(["--trees".into(), amount.to_string().into()]);
        command
    };
    let load = Load { command: Box::new(command), work: Work::Asked(1.0), first: 20 };
    Ok(Copy { server: None, load })
}

/// Return the Python if it has the modules. The error names the pip packages to install.
fn python(setting: &Setting, modules: &str, packages: &str) -> anyhow::Result<PathBuf> {
    let python = setting.python.clone();
    let probe = [python.clone().into(), "-c".into(), format!("import {modules}").into()];
    setting.session.output(&probe).with_context(|| {
        let shown = python.display();
        format!("{shown} lacks {modules}: pip install {packages}, and pass --python PATH")
    })?;
    Ok(python)
}

const SPARK: &str = include_str!("../../../../workloads/spark.py");

/// Prepare a job of workloads/spark.py in Spark's local mode. A unit of the amount is a round.
fn spark(setting: &Setting, job: &'static str) -> anyhow::Result<Copy> {
    let python = python(setting, "numpy, pyspark", "numpy pyspark")?;
    program("java", "default-jre-headless")?;
    let program = setting.session.scratch.write("spark.py", SPARK)?;
    let threads = setting.threads.to_string();
    let command = move |amount: u64| {
        let mut command: Vec<OsString> = vec![python.clone().into(), program.clone().into()];
        command.extend(["--job", job, "--threads", &threads, "--rounds"].map(OsString::from));
        command.push(amount.to_string().into());
        command
    };
    let load = Load { command: Box::new(command), work: Work::Asked(1.0), first: 4 };
    Ok(Copy { server: None, load })
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
