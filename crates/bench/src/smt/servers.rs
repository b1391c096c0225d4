//! Applications with a server. Each copy has its own folder, and its own port or socket.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::super::command::{after, split, words};
use super::super::in_path;
use super::super::postgres::Postgres;
use super::application::{Copy, Load, Ready, Server, free_port};
use super::catalogue::Setting;
use super::play::Serving;
use os::process;

/// Find a program in PATH or in /usr/sbin. The error names Debian's `package`.
pub fn program(name: &str, package: &str) -> anyhow::Result<PathBuf> {
    let found = in_path(name).or_else(|| {
        let path = Path::new("/usr/sbin").join(name);
        path.is_file().then_some(path)
    });
    found.with_context(|| format!("not installed (on Debian: apt-get install {package})"))
}

/// Create the folder of a copy. Other users may enter it: servers may drop root's rights.
fn folder(setting: &Setting, name: &str, copy: usize) -> anyhow::Result<PathBuf> {
    let folder = setting.session.scratch.path().join(format!("{name}-{copy}"));
    fs::create_dir_all(&folder)?;
    for path in [setting.session.scratch.path(), &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o711))?;
    }
    Ok(folder)
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Return the word `name` with a path at its end.
fn option(name: &str, path: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(path);
    option
}

fn random_bytes(number: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..number).map(|_| random.u8(..)).collect()
}

/// Build a load of ApacheBench. A unit of the amount is one request per connection.
fn requests(setting: &Setting, url: String, first: u64) -> anyhow::Result<Load> {
    let ab = program("ab", "apache2-utils")?;
    let clients = u64::from(setting.clients);
    let command = move |amount: u64| {
        let options = format!("-q -k -n {} -c {clients} {url}", amount * clients);
        [words![ab], split(&options)].concat()
    };
    Ok(Load::of(clients as f64, first, command))
}

/// Folders of Apache's modules on Debian, Fedora and Arch.
const MODULES: [&str; 3] =
    ["/usr/lib/apache2/modules", "/usr/lib64/httpd/modules", "/usr/lib/httpd/modules"];

pub fn apache(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("apache2", "apache2-bin").or_else(|_| program("httpd", "apache2-bin"))?;
    let modules = MODULES.into_iter().find(|m| Path::new(m).is_dir());
    let modules = modules.context("Apache's modules are not in any of the usual folders")?;
    let (folder, port) = (folder(setting, "apache", copy)?, free_port()?);
    let url = format!("http://127.0.0.1:{port}/page");
    let load = requests(setting, url, 100)?;
    let path = folder.display();
    write(&folder.join("page"), &random_bytes(4096, 1))?;
    // A thread answers one connection at a time.
    let threads = setting.clients.max(25);
    let user = if process::euid() == 0 { "User nobody\nGroup #65534\n" } else { "" };
    let text = format!(
        "ServerRoot {path}\nDefaultRuntimeDir {path}\nPidFile {path}/pid\nErrorLog {path}/log\n\
         ServerName localhost\nListen 127.0.0.1:{port}\nDocumentRoot {path}\n{user}\
         LoadModule mpm_event_module {modules}/mod_mpm_event.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         StartServers 1\nServerLimit 1\nThreadLimit {threads}\nThreadsPerChild {threads}\n\
         MaxRequestWorkers {threads}\nMinSpareThreads 1\nMaxSpareThreads {threads}\n\
         MaxKeepAliveRequests 0\n"
    );
    let configuration = folder.join("conf");
    write(&configuration, text.as_bytes())?;
    let command = words![server, "-DFOREGROUND", "-f", configuration];
    Ok(Copy::serving(command, Ready::Port(port), load))
}

/// Configuration of lighttpd that passes the options of `lissom run` to scripts. Otherwise scripts
/// inherit no variables.
const POLICY: &str = r#"include_shell "env | sed -nE \
    's/^(LISSOM[A-Z_]*)=(.*)$/setenv.add-environment += ( \"\1\" => \"\2\" )/p'""#;

/// Prepare lighttpd with a CGI script that puts a watermark on a photo at each request.
pub fn lighttpd(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("lighttpd", "lighttpd")?;
    let draw = program("gm", "graphicsmagick")?;
    let (folder, port) = (folder(setting, "lighttpd", copy)?, free_port()?);
    let load = requests(setting, format!("http://127.0.0.1:{port}/photo.sh"), 1)?;
    for (size, content, name) in
        [("640x480", "plasma:fractal", "photo.jpg"), ("160x60", "xc:white", "mark.png")]
    {
        let make = words![draw, "convert", "-size", size, content, folder.join(name)];
        setting.session.output(&make)?;
    }
    let script = format!(
        "printf 'Content-Type: image/jpeg\\r\\n\\r\\n'\n\
         exec '{}' composite -dissolve 40 -gravity SouthEast mark.png photo.jpg jpeg:-\n",
        draw.display()
    );
    write(&folder.join("photo.sh"), script.as_bytes())?;
    let path = folder.display();
    let text = format!(
        "server.document-root = \"{path}\"\nserver.bind = \"127.0.0.1\"\nserver.port = {port}\n\
         server.modules = ( \"mod_cgi\", \"mod_setenv\" )\n\
         cgi.assign = ( \"/photo.sh\" => \"/bin/sh\" )\n{POLICY}\n"
    );
    let configuration = folder.join("conf");
    write(&configuration, text.as_bytes())?;
    let command = words![server, "-D", "-f", configuration];
    Ok(Copy::serving(command, Ready::Port(port), load))
}

/// Files that clamd scans per unit of the amount.
const FILES: usize = 16;

/// Prepare clamd with random files, and a signature that matches none of them.
pub fn clamav(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("clamd", "clamav-daemon")?;
    let client = program("clamdscan", "clamdscan")?;
    let folder = folder(setting, "clamav", copy)?;
    let (database, files) = (folder.join("database"), folder.join("files"));
    fs::create_dir(&database)?;
    fs::create_dir(&files)?;
    write(&database.join("lissom.ndb"), b"Lissom.Test:0:*:6c6973736f6d2d7369676e6174757265\n")?;
    for i in 0..FILES {
        write(&files.join(i.to_string()), &random_bytes(100_000, i as u64))?;
    }
    let (path, socket) = (folder.display(), folder.join("socket"));
    let user = if process::euid() == 0 { "User root\n" } else { "" };
    let text = format!(
        "DatabaseDirectory {path}/database\nLocalSocket {path}/socket\nForeground yes\n{user}\
         MaxThreads {}\nDisableCache yes\n",
        setting.threads
    );
    let configuration = folder.join("clamd.conf");
    write(&configuration, text.as_bytes())?;
    let option = option("--config-file=", &configuration);
    let command = words![server, option];
    let load = move |amount: u64| {
        let mut command = words![client, option, "--multiscan", "--quiet", "--no-summary"];
        command.extend((0..amount).map(|_| files.clone().into()));
        command
    };
    Ok(Copy::serving(command, Ready::Socket(socket), Load::of(FILES as f64, 1, load)))
}

/// Prepare PostgreSQL with pgbench's TPC-B. A unit of the amount is one transaction per client.
pub fn pgsql(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = Postgres::create(setting.session, &format!("pgsql-{copy}"))?;
    let command = server.command(setting.clients);
    let ready = Ready::Line(server.folder.join("data/postmaster.pid"), "ready");
    let (program, folder) = (server.bin.join("pgbench"), server.folder);
    let (clients, threads) = (setting.clients, setting.threads);
    let load = move |amount: u64| {
        let options = format!("-n -U postgres -c {clients} -j {threads} -t {amount} postgres");
        [words![program, "-h", folder], split(&options)].concat()
    };
    Ok(Copy {
        server: Some(Server { user: server.user, command, ready }),
        load: Load::of(clients.into(), 20, load),
    })
}

/// Prepare MariaDB with SysBench's OLTP. A unit of the amount is a transaction.
pub fn mysql(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("mariadbd", "mariadb-server")?;
    let install = program("mariadb-install-db", "mariadb-server")?;
    let client = program("mariadb", "mariadb-client")?;
    let sysbench = program("sysbench", "sysbench")?;
    let folder = folder(setting, "mysql", copy)?;
    let (data, socket) = (folder.join("data"), folder.join("socket"));
    let (data, listen) = (option("--datadir=", &data), option("--socket=", &socket));
    let user: &[&str] = if process::euid() == 0 { &["--user=root"] } else { &[] };
    let user: Vec<OsString> = user.iter().map(OsString::from).collect();
    let make =
        split("--skip-test-db --auth-root-authentication-method=normal --innodb-log-file-size=8M");
    let command = split(
        "--skip-networking --innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 \
         --innodb-fast-shutdown=3 --performance-schema=OFF",
    );
    let make = [words![install, "--no-defaults", data], make, user.clone()].concat();
    let command = [words![server, "--no-defaults", data, listen], command, user].concat();
    setting.session.output(&make)?;
    let of = |what: &str| {
        let options =
            format!("--mysql-user=root --mysql-db=test --tables=2 --table-size=10000 {what}");
        let socket = option("--mysql-socket=", &socket);
        [words![sysbench, "oltp_read_write", socket], split(&options)].concat()
    };
    let create =
        words![client, "--no-defaults", "--user=root", listen, "-e", "CREATE DATABASE test"];
    let (threads, run) = (setting.clients, of("run"));
    let load = move |amount: u64| {
        after(&run, &split(&format!("--time=0 --threads={threads} --events={amount}")))
    };
    let server = Server { user: vec![], command, ready: Ready::Socket(socket.clone()) };
    let mut serving = Serving::start(setting.session, &server, &[], "prepare")?;
    serving.await_ready(setting.session)?;
    setting.session.output(&create)?;
    setting.session.output(&of("prepare"))?;
    serving.stop(setting.session)?;
    Ok(Copy { server: Some(server), load: Load::of(1.0, 100, load) })
}

/// Prepare Redis with concurrent reads and writes. A unit of the amount is one of each.
pub fn redis(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("redis-server", "redis-server")?;
    let client = program("redis-benchmark", "redis-tools")?;
    let folder = folder(setting, "redis", copy)?;
    let socket = folder.join("socket");
    let command =
        words![server, "--port", "0", "--save", "", "--unixsocket", socket, "--dir", folder];
    let script = r#"
        "$@" -t set >/dev/null & writes=$!
        "$@" -t get >/dev/null
        wait $writes
    "#;
    let clients = setting.clients.div_ceil(2);
    let asked = socket.clone();
    let load = move |amount: u64| {
        let options = format!("-q -r 10000 -d 100 -c {clients} -n {amount}");
        [words!["sh", "-ec", script, "sh", client, "-s", asked], split(&options)].concat()
    };
    Ok(Copy::serving(command, Ready::Socket(socket), Load::of(2.0, 5000, load)))
}
