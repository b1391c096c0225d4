//! Run one case, once or several times, and check its result.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::active::{self, Witness};
use super::case::{Case, Level};
use super::expect::{self, Exit, indent};
use super::region::Region;
use super::{beside, hang, interrupt, programs};

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

    pub fn level_name(self) -> &'static str {
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

/// Path of the binary under test.
pub fn lissom() -> PathBuf {
    std::env::var_os("LISSOM_TEST_BIN")
        .map_or_else(|| env!("CARGO_BIN_EXE_lissom").into(), PathBuf::from)
}

/// Folder of the project.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("crates/lissom")
}

pub fn target_dir() -> PathBuf {
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    tmp.parent().unwrap_or(tmp).to_path_buf()
}

pub fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

static BESIDE_OTHERS: AtomicBool = AtomicBool::new(false);

/// Set whether several cases run at the same time.
pub fn set_beside_others(value: bool) {
    BESIDE_OTHERS.store(value, Ordering::Relaxed);
}

/// Whether several cases run at the same time. Programs then do not share CPUs under lissom:
/// sharing would leave each one slot, so that no thread moves between slots.
fn beside_others() -> bool {
    BESIDE_OTHERS.load(Ordering::Relaxed)
}

/// Seed of the first run of each case: LISSOM_TEST_SEED, or from the clock.
pub fn first_seed() -> u32 {
    let given = std::env::var("LISSOM_TEST_SEED").ok().and_then(|s| s.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        (now.as_nanos() % 1_000_000_007) as u32
    })
}

/// Select which of a case's variants run.
#[derive(Clone, Copy)]
pub struct Selection {
    /// Every level and ratio, as often as REPEAT says. Otherwise each level that switches, once, at
    /// the highest ratio, as every change has to pass.
    pub all: bool,
    /// Allow skipping any case whose requirements are missing.
    pub skips_allowed: bool,
}

impl Selection {
    /// Read LISSOM_TEST_ALL=1 and LISSOM_TEST_SKIP=any.
    pub fn from_environment() -> Selection {
        let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
        Selection { all: is("LISSOM_TEST_ALL", "1"), skips_allowed: is("LISSOM_TEST_SKIP", "any") }
    }

    pub fn variants(self, case: &Case) -> Vec<Variant> {
        let switches = |level: &Level| !matches!(level, Level::Native | Level::Switch("off"));
        let mut levels: Vec<Level> =
            case.levels.iter().copied().filter(|l| self.all || switches(l)).collect();
        if levels.is_empty() {
            levels.clone_from(&case.levels);
        }
        let highest =
            if self.all { 0 } else { case.ratios.iter().copied().max().unwrap_or_default() };
        let ratios = case.ratios.iter().copied().filter(|&r| r >= highest).map(Some);
        let ratios: Vec<Option<u32>> =
            if case.ratios.is_empty() { vec![None] } else { ratios.collect() };
        levels
            .into_iter()
            .flat_map(|level| {
                ratios.iter().map(move |&ratio| Variant { level, ratio }).collect::<Vec<_>>()
            })
            .collect()
    }
}

/// Run the case `repeat` times, each time with another seed.
pub fn run(
    case: &Case,
    variant: Variant,
    full_name: &str,
    first_seed: u32,
    repeat: u32,
) -> Result<(), String> {
    for round in 0..repeat {
        let seed = (first_seed.wrapping_add(round)) & 0x7fff_ffff;
        once(case, variant, seed).map_err(|problem| {
            format!(
                "{problem}\nround {} of {}; again with:\n    LISSOM_TEST_SEED={seed} cargo test --test cases -- \
                 --exact '{full_name}'",
                round + 1,
                repeat
            )
        })?;
    }
    Ok(())
}

fn once(case: &Case, variant: Variant, seed: u32) -> Result<(), String> {
    let deadline = Instant::now() + case.timeout;
    let script = substitute(case, variant, &case.run)?;
    let folder = Scratch::new()?;
    let region = Region::create().map_err(|e| format!("region of statistics: {e}"))?;
    let run = Run { case, variant, seed, folder: &folder, region: &region };
    let mut sessions = Vec::new();
    let mut problems = Vec::new();
    for (number, companion) in case.before.iter().enumerate() {
        let script = substitute(case, variant, &companion.command)?;
        let command = run.command(&format!("exec {script}"), &sessions);
        match beside::start(command, companion, &folder.work(), number + 1, deadline) {
            Ok(companion) => sessions.push(companion),
            Err((problem, companion)) => {
                problems.push(problem);
                sessions.extend(companion);
                break;
            }
        }
    }
    let watched: Vec<_> = sessions.iter().map(|c| interrupt::watch(c.pid() as i32)).collect();
    if problems.is_empty() {
        problems = run.main_program(&script, &sessions, deadline)?;
    }
    for companion in sessions {
        hang::kill_session(companion.pid() as i32);
        companion.finish();
    }
    drop(watched);

    let processes = region.processes().map_err(|e| format!("region of statistics: {e}"))?;
    problems.extend(active::problems(case, variant, &processes, &folder.witnesses()));
    if problems.is_empty() {
        folder.remove();
        return Ok(());
    }
    let report = format!(
        "{}\ncommand:\n{}standard output:\n{}standard error:\n{}processes:\n{}folder: {}",
        problems.join("\n"),
        indent(&script),
        indent(&shortened(&folder.text("stdout"))),
        indent(&shortened(&folder.text("stderr"))),
        indent(&shortened(&active::describe(&processes))),
        folder.0.display()
    );
    // The test library prints reports only after all tests; this file can be read at once.
    let _ = fs::write(folder.0.join("report"), &report);
    Err(report)
}

/// One run of a case.
struct Run<'a> {
    case: &'a Case,
    variant: Variant,
    seed: u32,
    folder: &'a Scratch,
    region: &'a Region,
}

impl Run<'_> {
    /// Run RUN to its end, or kill it at the deadline. Reports what differs from the expected
    /// result.
    fn main_program(
        &self,
        script: &str,
        beside: &[beside::Running],
        deadline: Instant,
    ) -> Result<Vec<String>, String> {
        let mut command = self.command(script, beside);
        let file =
            |name: &str| File::create(self.folder.0.join(name)).map_err(|e| format!("{name}: {e}"));
        command.stdout(file("stdout")?).stderr(file("stderr")?);
        let mut child = command.spawn().map_err(|e| format!("bash: {e}"))?;
        let session = child.id() as i32;
        let watched = interrupt::watch(session);
        let ended = wait(&mut child, deadline);
        let hung = ended.is_none().then(|| {
            let others = beside.iter().map(|c| hang::describe(c.pid() as i32));
            others.fold(hang::describe(session), |text, other| text + &other)
        });
        hang::kill_session(session);
        let _ = child.wait();
        drop(watched);

        let case = self.case;
        let mut problems = Vec::new();
        if let Some(state) = hung {
            problems.push(format!("still running after {:?}; its threads:\n{state}", case.timeout));
        }
        if let Some(status) = ended {
            let exit = status
                .signal()
                .map_or_else(|| Exit::Code(status.code().unwrap_or(-1)), Exit::Signal);
            if exit != case.exit {
                problems.push(format!("exit: {exit:?}, expected {:?}", case.exit));
            }
            let stdout =
                case.stdout.as_ref().map(|lines| expect::whole(lines, &self.folder.text("stdout")));
            if let Some(Err(problem)) = stdout {
                problems.push(format!("standard output: {problem}"));
            }
            let stderr = case
                .stderr
                .as_ref()
                .map(|lines| expect::contains(lines, &self.folder.text("stderr")));
            if let Some(Err(problem)) = stderr {
                problems.push(format!("standard error: {problem}"));
            }
        }
        Ok(problems)
    }

    /// Return a bash command that runs the script in the case's folder as a session leader.
    fn command(&self, script: &str, beside: &[beside::Running]) -> Command {
        let work = self.folder.work();
        let mut command = Command::new("bash");
        command.arg("-c").arg(script).current_dir(&work).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let ours = ["LISSOM", "LD_PRELOAD", "GLIBC_TUNABLES", "OMP_", "GOMP_", "KMP_"];
            if ours.iter().any(|o| text.starts_with(o)) {
                command.env_remove(&name);
            }
        }
        command.env("CPUS", cpus().to_string()).env("LEVEL", self.variant.level_name());
        command.env("SEED", self.seed.to_string()).env("TMPDIR", &work);
        if let Some(ratio) = self.variant.ratio {
            command.env("THREADS", (ratio as usize * cpus()).to_string());
        }
        for (number, companion) in beside.iter().enumerate() {
            let suffix = if number == 0 { String::new() } else { format!("_{}", number + 1) };
            command.env(format!("BEFORE_PID{suffix}"), companion.pid().to_string());
        }
        let recorded =
            matches!(self.variant.level, Level::Switch(_)) || !self.case.counters.is_empty();
        if recorded {
            let (name, value) = self.region.variable();
            command.env(name, value);
            // A program that runs natively may have forbidden itself to write.
            if self.case.native.is_none() {
                command.env("TEST_WITNESS", self.folder.0.join("witness"));
            }
        }
        if !self.case.exclusive && beside_others() {
            command.env("LISSOM_SHARE", "off");
        }
        for (name, value) in &self.case.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let region = self.region.descriptor();
        // SAFETY: only async-signal-safe calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                // A session and process group of its own: it can be killed as a whole and has no
                // terminal.
                libc::setsid();
                // The case must not inherit descriptors of the runner other than 0, 1 and 2.
                libc::close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as i32);
                if recorded {
                    Region::keep_on_exec(region);
                }
                let none = libc::rlimit { rlim_cur: 0, rlim_max: libc::RLIM_INFINITY };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                Ok(())
            });
        }
        command
    }
}

/// Replace the placeholders.
fn substitute(case: &Case, variant: Variant, text: &str) -> Result<String, String> {
    let prefix = variant.prefix();
    let mut script = text.to_string();
    let is_run = std::ptr::eq(text, case.run.as_str());
    if is_run && !script.contains("{run}") {
        script.insert_str(0, &prefix);
    }
    // The blank after {run} is part of the prefix.
    script = script.replace("{run} ", &prefix).replace("{run}", &prefix);
    script = script
        .replace("{lissom}", &quoted(&lissom()))
        .replace("{level}", variant.level_name())
        .replace("{root}", &root().to_string_lossy())
        .replace("{target}", &target_dir().display().to_string());
    while let Some(start) = script.find("{prog:") {
        let end = script[start..].find('}').ok_or("{prog: without }")? + start;
        let built = programs::program(&script[start + 6..end])?;
        script.replace_range(start..=end, &quoted(&built));
    }
    Ok(script)
}

/// Quote the path for the shell if it needs quoting.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-@+".contains(&b)) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Wait for the child until `end`. Returns None on timeout.
fn wait(child: &mut Child, end: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(500);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(pause);
        // Short cases end soon; long ones should not be disturbed by frequent polling.
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

/// The folder of one run: `work`, its working directory, and its outputs.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Result<Scratch, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("case-{}-{count}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(folder.join("work"))
            .map_err(|e| format!("{}: {e}", folder.display()))?;
        // Programs that give up root also write into it.
        let witness = folder.join("witness");
        File::create(&witness)
            .and_then(|file| file.set_permissions(fs::Permissions::from_mode(0o666)))
            .map_err(|e| format!("{}: {e}", witness.display()))?;
        Ok(Scratch(folder))
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.0.join(name)).unwrap_or_default()).into_owned()
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn work(&self) -> PathBuf {
        self.0.join("work")
    }

    /// Read the lines that the witness (tests/runner/witness.c) wrote.
    fn witnesses(&self) -> Vec<Witness> {
        let parse = |line: &str| {
            let (pid, what) = line.split_once(' ')?;
            Some(Witness { pid: pid.parse().ok()?, had_threads: what == "had threads" })
        };
        self.text("witness").lines().filter_map(parse).collect()
    }

    pub fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
