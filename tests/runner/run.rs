//! Runs one case, once or several times, and judges it.

use std::fs::{self, File};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::case::{Case, Level};
use super::expect::{self, Exit, indent};
use super::{hang, interrupt, programs};

#[derive(Clone, Copy)]
pub struct Variant {
    pub level: Level,
    pub ratio: Option<u32>,
}

impl Variant {
    pub fn suffix(self) -> String {
        let ratio = self.ratio.map(|r| format!("x{r}"));
        let level = (self.level != Level::Plain).then(|| self.level_name().to_string());
        match [level, ratio].into_iter().flatten().collect::<Vec<_>>().join(",") {
            parts if parts.is_empty() => parts,
            parts => format!("[{parts}]"),
        }
    }

    fn level_name(self) -> &'static str {
        match self.level {
            Level::Plain => "plain",
            Level::Native => "native",
            Level::Switch(name) => name,
        }
    }

    fn prefix(self) -> String {
        match self.level {
            Level::Switch(name) => format!("{} run --switch={name} -- ", quoted(&lissom())),
            _ => String::new(),
        }
    }
}

/// The binary under test.
pub fn lissom() -> PathBuf {
    std::env::var_os("LISSOM_TEST_BIN").map_or_else(|| env!("CARGO_BIN_EXE_lissom").into(), PathBuf::from)
}

pub fn target_dir() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().unwrap_or(tmp).to_path_buf()
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// The seed of the first run of each case: given, or from the clock.
pub fn first_seed() -> u32 {
    let given = std::env::var("LISSOM_TEST_SEED").ok().and_then(|s| s.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        (now.as_nanos() % 1_000_000_007) as u32
    })
}

pub fn run(case: &Case, variant: Variant, full_name: &str, first_seed: u32) -> Result<(), String> {
    for round in 0..case.repeat {
        let seed = (first_seed.wrapping_add(round)) & 0x7fff_ffff;
        once(case, variant, seed).map_err(|problem| {
            format!(
                "{problem}\nround {} of {}; again with:\n    LISSOM_TEST_SEED={seed} cargo test --test cases -- \
                 --exact '{full_name}'",
                round + 1,
                case.repeat
            )
        })?;
    }
    Ok(())
}

fn once(case: &Case, variant: Variant, seed: u32) -> Result<(), String> {
    let script = substitute(case, variant)?;
    let folder = Scratch::new()?;
    let mut child = start(case, variant, seed, &script, &folder).map_err(|e| format!("bash: {e}"))?;
    let session = child.id() as i32;
    let watched = interrupt::watch(session);
    let ended = wait(&mut child, case.timeout);
    let hung = ended.is_none().then(|| hang::describe(session));
    hang::kill_session(session);
    let _ = child.wait();
    drop(watched);

    let mut problems = Vec::new();
    if let Some(state) = hung {
        problems.push(format!("still running after {:?}; its threads:\n{state}", case.timeout));
    }
    let stdout = folder.text("stdout");
    let stderr = folder.text("stderr");
    if let Some(status) = ended {
        let exit = status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(-1)), Exit::Signal);
        if exit != case.exit {
            problems.push(format!("exit: {exit:?}, expected {:?}", case.exit));
        }
        if let Some(Err(problem)) = case.stdout.as_ref().map(|lines| expect::whole(lines, &stdout)) {
            problems.push(format!("standard output: {problem}"));
        }
        if let Some(Err(problem)) = case.stderr.as_ref().map(|lines| expect::contains(lines, &stderr)) {
            problems.push(format!("standard error: {problem}"));
        }
    }
    if problems.is_empty() {
        folder.remove();
        return Ok(());
    }
    let report = format!(
        "{}\ncommand:\n{}standard output:\n{}standard error:\n{}folder: {}",
        problems.join("\n"),
        indent(&script),
        indent(&shortened(&stdout)),
        indent(&shortened(&stderr)),
        folder.0.display()
    );
    // The test library prints reports when all tests have ended; this one can be read before.
    let _ = fs::write(folder.0.join("report"), &report);
    Err(report)
}

/// Fills in the placeholders.
fn substitute(case: &Case, variant: Variant) -> Result<String, String> {
    let prefix = variant.prefix();
    let mut script = case.run.clone();
    if !script.contains("{run}") {
        script.insert_str(0, &prefix);
    }
    // The blank behind {run} is part of the prefix.
    script = script.replace("{run} ", &prefix).replace("{run}", &prefix);
    script = script
        .replace("{lissom}", &quoted(&lissom()))
        .replace("{level}", variant.level_name())
        .replace("{root}", env!("CARGO_MANIFEST_DIR"))
        .replace("{target}", &target_dir().display().to_string());
    while let Some(start) = script.find("{prog:") {
        let end = script[start..].find('}').ok_or("{prog: without }")? + start;
        let built = programs::program(&script[start + 6..end])?;
        script.replace_range(start..=end, &quoted(&built));
    }
    Ok(script)
}

/// For the shell; plain where that is enough.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-@+".contains(&b)) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn start(case: &Case, variant: Variant, seed: u32, script: &str, folder: &Scratch) -> std::io::Result<Child> {
    let work = folder.0.join("work");
    let mut command = Command::new("bash");
    command.arg("-c").arg(script).current_dir(&work).stdin(Stdio::null());
    command.stdout(File::create(folder.0.join("stdout"))?);
    command.stderr(File::create(folder.0.join("stderr"))?);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let ours = ["LISSOM", "LD_PRELOAD", "GLIBC_TUNABLES", "OMP_", "GOMP_", "KMP_"];
        if ours.iter().any(|o| text.starts_with(o)) {
            command.env_remove(&name);
        }
    }
    command.env("CPUS", cpus().to_string()).env("LEVEL", variant.level_name()).env("SEED", seed.to_string());
    command.env("TMPDIR", &work);
    if let Some(ratio) = variant.ratio {
        command.env("THREADS", (ratio as usize * cpus()).to_string());
    }
    for (name, value) in &case.environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    // SAFETY: only async-signal-safe calls between fork and exec.
    unsafe {
        command.pre_exec(|| {
            // A session, and with it a process group, of its own: it can be killed whole, and has no terminal.
            libc::setsid();
            // What the runner itself was given besides the three is no business of the case.
            libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
            let none = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            Ok(())
        });
    }
    command.spawn()
}

/// None if the time is up.
fn wait(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + timeout;
    let mut pause = Duration::from_micros(500);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(pause);
        // Short cases end soon; long ones should not be disturbed by our looking.
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn shortened(text: &str) -> String {
    const LINES: usize = 40;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= 2 * LINES {
        return text.to_string();
    }
    let left_out = lines.len() - 2 * LINES;
    format!(
        "{}\n... {left_out} lines ...\n{}",
        lines[..LINES].join("\n"),
        lines[lines.len() - LINES..].join("\n")
    )
}

/// The folder of one run: `work`, in which it starts, and its outputs.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, String> {
        static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("case-{}-{count}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("work")).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(Scratch(folder))
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.0.join(name)).unwrap_or_default()).into_owned()
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
