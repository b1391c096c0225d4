//! The applications: those of the paper, or programs that stand in for them.

use std::path::PathBuf;

use super::super::Session;
use super::application::Copy;
use super::{programs, servers};

/// What all applications are told.
pub struct Setting<'a> {
    pub session: &'a Session,
    /// Of a program that computes.
    pub threads: u32,
    /// Connections of a server.
    pub clients: u32,
    pub python: PathBuf,
}

pub struct Application {
    pub name: &'static str,
    /// Its name in the paper.
    pub paper: &'static str,
    /// Of its throughput.
    pub unit: &'static str,
    /// The error names what has to be installed.
    pub prepare: fn(&Setting, usize) -> anyhow::Result<Copy>,
}

const fn of(
    name: &'static str,
    paper: &'static str,
    unit: &'static str,
    prepare: fn(&Setting, usize) -> anyhow::Result<Copy>,
) -> Application {
    Application { name, paper, unit, prepare }
}

/// Fig. 2's programs first, then in the paper's order.
pub const APPLICATIONS: &[Application] = &[
    of("dedup", "dedup", "MiB a second", programs::dedup),
    of("volrend", "volrend", "frames a second", programs::volrend),
    of("apache", "Apache", "requests a second", servers::apache),
    of("clamav", "ClamAV", "files a second", servers::clamav),
    of("dbench", "FileServer", "operations a second", programs::dbench),
    of("lighttpd", "lighttpd", "images a second", servers::lighttpd),
    of("ffmpeg", "MediaTomb", "frames a second", programs::ffmpeg),
    of("mysql", "MySQL", "transactions a second", servers::mysql),
    of("pgsql", "PgSQL", "transactions a second", servers::pgsql),
    of("redis", "SSDB", "requests a second", servers::redis),
    of("xgboost", "XGBoost", "trees a second", programs::xgboost),
    of("terasort", "Hadoop TeraSort", "sorts a second", programs::terasort),
    of("pagerank", "Spark PageRank", "iterations a second", programs::pagerank),
    of("kmeans", "Spark k-means", "iterations a second", programs::kmeans),
];

/// Programs of Fig. 2, which run beside a second copy of themselves also with --quick.
pub const FIGURE_2: [&str; 2] = ["dedup", "volrend"];
pub const QUICK: [&str; 5] = ["dedup", "volrend", "dbench", "ffmpeg", "redis"];
/// A JVM takes seconds to start: measured only if asked for.
pub const SLOW: [&str; 3] = ["terasort", "pagerank", "kmeans"];

/// Applications of the paper that no package offers.
pub const ABSENT: [(&str, &str); 3] = [
    ("DBT1", "no package has a TPC-W benchmark"),
    ("HDFS TestDFSIO", "no package has Hadoop's HDFS"),
    ("MongoDB", "no package has mongod or YCSB"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lists_name_applications() {
        let mut names: Vec<&str> = APPLICATIONS.iter().map(|a| a.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), APPLICATIONS.len());
        for name in FIGURE_2.iter().chain(&QUICK).chain(&SLOW) {
            assert!(names.contains(name), "{name}");
        }
        assert!(FIGURE_2.iter().all(|n| QUICK.contains(n)));
    }
}
