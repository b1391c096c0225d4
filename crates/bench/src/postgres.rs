//! PostgreSQL with its own database cluster.

use std::ffi::OsString;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::command::words;
use super::{STATISTICS, Session, in_path};
use os::process;

/// A database cluster in the session's folder. For root, it belongs to the user `postgres`, since
/// the server refuses to run as root.
pub struct Postgres {
    pub bin: PathBuf,
    /// Contains the data and the socket.
    pub folder: PathBuf,
    /// Words in front of all commands that change to the cluster's user; empty without root.
    pub user: Vec<OsString>,
}

/// pgbench's scale: 300,000 rows, 45 MB.
const SCALE: &str = "3";

impl Postgres {
    /// Create a cluster in the folder `name`, with pgbench's tables.
    pub fn create(session: &Session, name: &str) -> anyhow::Result<Postgres> {
        let bin =
            Postgres::find().context("not installed (on Debian: apt-get install postgresql)")?;
        let folder = session.scratch.path().join(name);
        std::fs::create_dir(&folder)?;
        let mut user = Vec::new();
        if process::euid() == 0 {
            let name = Path::new("/etc/passwd");
            let users = std::fs::read_to_string(name).unwrap_or_default();
            let fields = users
                .lines()
                .find(|l| l.starts_with("postgres:"))
                .context("there is no user postgres")?;
            let ids: Vec<u32> = fields.split(':').skip(2).take(2).flat_map(str::parse).collect();
            let &[uid, gid] = &ids[..] else { bail!("{}: {fields}", name.display()) };
            // That user must reach the database and the statistics file in the folder.
            std::fs::set_permissions(
                session.scratch.path(),
                std::fs::Permissions::from_mode(0o711),
            )?;
            chown(&folder, Some(uid), Some(gid))?;
            chown(session.scratch.write(STATISTICS, "")?, Some(uid), Some(gid))?;
            let ids = (format!("--reuid={uid}"), format!("--regid={gid}"));
            user = words!["setpriv", ids.0, ids.1, "--clear-groups"];
        }
        let server = Postgres { bin, folder, user };
        let mut init = server.user.clone();
        init.extend(words![server.bin.join("initdb"), "-D", server.folder.join("data")]);
        init.extend(words!["-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]);
        init.push("--locale=C".into());
        session.output(&init)?;
        // Create pgbench's tables with a server that exits with the script.
        let script = r#"
            cd "$1" && bin=$2 && shift 2
            "$@" & trap 'kill -INT $!; wait $!' EXIT
            for i in $(seq 200); do "$bin/pg_isready" -q -h "$PWD" && break; sleep 0.1; done
            "$bin/pgbench" -i -q -s "$SCALE" -h "$PWD" -U postgres postgres
        "#;
        let mut fill = words!["env", format!("SCALE={SCALE}"), "sh", "-ec", script, "sh"];
        fill.extend(words![&server.folder, &server.bin]);
        fill.extend(server.user.iter().cloned().chain(server.command(4)));
        session.output(&fill)?;
        Ok(server)
    }

    /// Return the server's command for `connections` connections.
    pub fn command(&self, connections: u32) -> Vec<OsString> {
        let mut command = words![self.bin.join("postgres"), "-D", self.folder.join("data")];
        command.extend(words!["-k", &self.folder]);
        let connections = format!("max_connections={}", connections + 10);
        for setting in ["listen_addresses=", "fsync=off", "autovacuum=off", &connections] {
            command.extend(words!["-c", setting]);
        }
        command
    }

    fn find() -> Option<PathBuf> {
        let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = debian.map(|e| e.path().join("bin")).collect();
        folders.sort();
        folders.extend(in_path("postgres").and_then(|p| p.parent().map(Path::to_path_buf)));
        folders
            .into_iter()
            .rev()
            .find(|f| f.join("postgres").is_file() && f.join("pgbench").is_file())
    }
}
