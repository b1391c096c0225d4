//! The paper's applications, or similar programs where no package has them.

use std::path::PathBuf;

use super::super::Session;
use super::application::Copy;
use super::{programs, servers};

/// Settings of all applications.
pub struct Setting<'a> {
    pub session: &'a Session,
    /// Threads of a program that computes, and of a client.
    pub threads: u32,
    /// Connections of a server.
    pub clients: u32,
    pub python: Option<PathBuf>,
}

pub struct Application {
    pub name: &'static str,
    /// Its name in the paper.
    pub paper: &'static str,
    /// Unit of its throughput.
    pub unit: &'static str,
    /// Prepare a copy, by its number from 0. The error names what to install.
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

/// All applications: those of Fig. 2, then the others in the paper's order.
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

/// Programs of Fig. 2, for which --quick includes the pair `same`.
pub const FIGURE_2: [&str; 2] = ["dedup", "volrend"];
pub const QUICK: [&str; 5] = ["dedup", "volrend", "dbench", "ffmpeg", "redis"];
/// Applications that are measured only if named: a JVM takes seconds to start.
pub const SLOW: [&str; 3] = ["terasort", "pagerank", "kmeans"];

/// Applications of the paper that no package provides, and why.
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
