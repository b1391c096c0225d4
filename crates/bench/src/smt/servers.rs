//! Applications with a server. Each copy has its own folder, and its own port or socket.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

use super::super::in_path;
use super::super::postgres::Postgres;
use super::application::{Copy, Load, Ready, Server, Work, free_port};
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

fn words(list: &[&str]) -> Vec<OsString> {
    list.iter().map(OsString::from).collect()
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
        let mut command: Vec<OsString> = vec![ab.clone().into()];
        let (n, c) = ((amount * clients).to_string(), clients.to_string());
        command.extend(words(&["-q", "-k", "-n", &n, "-c", &c, &url]));
        command
    };
    Ok(Load { command: Box::new(command), work: Work::Asked(clients as f64), first })
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
    let mut command: Vec<OsString> = vec![server.into(), "-DFOREGROUND".into(), "-f".into()];
    command.push(configuration.into());
    let server = Server { user: vec![], command, ready: Ready::Port(port) };
    Ok(Copy { server: Some(server), load })
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
    for (options, name) in [
        (&["-size", "640x480", "plasma:fractal"][..], "photo.jpg"),
        (&["-size", "160x60", "xc:white"][..], "mark.png"),
    ] {
        let mut command: Vec<OsString> = vec![draw.clone().into(), "convert".into()];
        command.extend(words(options));
        command.push(folder.join(name).into());
        setting.session.output(&command)?;
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
    let command = vec![server.into(), "-D".into(), "-f".into(), configuration.into_os_string()];
    let server = Server { user: vec![], command, ready: Ready::Port(port) };
    Ok(Copy { server: Some(server), load })
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
    let mut option = OsString::from("--config-file=");
    option.push(&configuration);
    let command = vec![server.into(), option.clone()];
    let load = move |amount: u64| {
        let mut command: Vec<OsString> = vec![client.clone().into(), option.clone()];
        command.extend(words(&["--multiscan", "--quiet", "--no-summary"]));
        command.extend((0..amount).map(|_| files.clone().into()));
        command
    };
    Ok(Copy {
        server: Some(Server { user: vec![], command, ready: Ready::Socket(socket) }),
        load: Load { command: Box::new(load), work: Work::Asked(FILES as f64), first: 1 },
    })
}

/// Prepare PostgreSQL with pgbench's TPC-B. A unit of the amount is one transaction per client.
pub fn pgsql(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = Postgres::create(setting.session, &format!("pgsql-{copy}"))?;
    let command = server.command(setting.clients);
    let ready = Ready::Line(server.folder.join("data/postmaster.pid"), "ready");
    let (program, folder) = (server.bin.join("pgbench"), server.folder);
    let (clients, threads) = (setting.clients.to_string(), setting.threads.to_string());
    let load = move |amount: u64| {
        let mut command: Vec<OsString> = vec![program.clone().into(), "-h".into()];
        command.push(folder.clone().into());
        let amount = amount.to_string();
        command.extend(words(&["-n", "-U", "postgres", "-c", &clients, "-j", &threads, "-t"]));
        command.extend(words(&[&amount, "postgres"]));
        command
    };
    Ok(Copy {
        server: Some(Server { user: server.user, command, ready }),
        load: Load {
            command: Box::new(load),
            work: Work::Asked(f64::from(setting.clients)),
            first: 20,
        },
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
    let option = |name: &str, path: &Path| {
        let mut option = OsString::from(name);
        option.push(path);
        option
    };
    let mut make: Vec<OsString> = vec![install.into(), "--no-defaults".into()];
    make.extend([option("--datadir=", &data), "--skip-test-db".into()]);
    make.extend(words(&["--auth-root-authentication-method=normal", "--innodb-log-file-size=8M"]));
    let mut command: Vec<OsString> = vec![server.into(), "--no-defaults".into()];
    command.extend([option("--datadir=", &data), option("--socket=", &socket)]);
    command.extend(words(&[
        "--skip-networking",
        "--innodb-log-file-size=8M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-fast-shutdown=3",
        "--performance-schema=OFF",
    ]));
    if process::euid() == 0 {
        make.push("--user=root".into());
        command.push("--user=root".into());
    }
    setting.session.output(&make)?;
    let of = |what: &str| {
        let mut command: Vec<OsString> = vec![sysbench.clone().into(), "oltp_read_write".into()];
        command.push(option("--mysql-socket=", &socket));
        command.extend(words(&["--mysql-user=root", "--mysql-db=test"]));
        command.extend(words(&["--tables=2", "--table-size=10000", what]));
        command
    };
    let server = Server { user: vec![], command, ready: Ready::Socket(socket.clone()) };
    let mut create: Vec<OsString> = vec![client.into(), "--no-defaults".into()];
    create.extend(["--user=root".into(), option("--socket=", &socket)]);
    create.extend(words(&["-e", "CREATE DATABASE test"]));
    let mut serving = Serving::start(setting.session, &server, &[], "prepare")?;
    serving.await_ready(setting.session)?.map_err(|why| anyhow!("{why}"))?;
    setting.session.output(&create)?;
    setting.session.output(&of("prepare"))?;
    serving.stop(setting.session)?;
    let (threads, run) = (setting.clients, of("run"));
    let load = move |amount: u64| {
        let mut command = run.clone();
        command.extend(words(&["--time=0"]));
        command
            .extend([format!("--threads={threads}").into(), format!("--events={amount}").into()]);
        command
    };
    Ok(Copy {
        server: Some(server),
        load: Load { command: Box::new(load), work: Work::Asked(1.0), first: 100 },
    })
}

/// Prepare Redis with concurrent reads and writes. A unit of the amount is one of each.
pub fn redis(setting: &Setting, copy: usize) -> anyhow::Result<Copy> {
    let server = program("redis-server", "redis-server")?;
    let client = program("redis-benchmark", "redis-tools")?;
    let folder = folder(setting, "redis", copy)?;
    let socket = folder.join("socket");
    let mut command: Vec<OsString> = vec![server.into()];
    command.extend(words(&["--port", "0", "--save", "", "--unixsocket"]));
    command.extend([socket.clone().into(), "--dir".into(), folder.into()]);
    let script = r#"
        "$@" -t set >/dev/null & writes=$!
        "$@" -t get >/dev/null
        wait $writes
    "#;
    let clients = setting.clients.div_ceil(2).to_string();
    let asked = socket.clone();
    let load = move |amount: u64| {
        let mut command = words(&["sh", "-ec", script, "sh"]);
        command.extend([client.clone().into(), "-s".into(), asked.clone().into()]);
        let amount = amount.to_string();
        command.extend(words(&["-q", "-r", "10000", "-d", "100", "-c", &clients, "-n", &amount]));
        command
    };
    Ok(Copy {
        server: Some(Server { user: vec![], command, ready: Ready::Socket(socket) }),
        load: Load { command: Box::new(load), work: Work::Asked(2.0), first: 5000 },
    })
}
