//! Compile the runtime (C and assembly in runtime/, and the Zydis decoder) into liblissom.so.
//! Convert the lists of runtime/abi.h to Rust.
//!
//! This is a small make: it compiles a source again only if its command line, the source or an
//! included header has changed. The `cc` crate only finds the compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;
use std::{env, fs};

use build::{flags, root, run, sources, zydis_includes, zydis_sources};

#[path = "build/abi.rs"]
mod abi;

/// Files of Zydis and its base library that decoding needs.
const ZYDIS: &[&str] =
    &["src/Decoder.c", "src/DecoderData.c", "src/Register.c", "src/SharedData.c", "src/Utils.c"];

/// Sources that are compiled without `together`. The compiler itself emits calls to the functions
/// of `mem.c`. The others contain assembly that refers to C functions by name, and GCC would drop
/// or rename these.
const APART: &[&str] = &["mem.c", "restrict.c", "lissom.c"];

fn main() {
    let root = root();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let runtime = root.join("runtime");
    println!("cargo::rerun-if-changed={}", runtime.display());
    println!("cargo::rerun-if-changed={}", root.join("Cargo.lock").display());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");

    let target = env::var("TARGET").expect("cargo sets it");
    assert!(
        target.starts_with("x86_64-") && target.contains("linux"),
        "lissom runs on x86-64 Linux only, not on {target}"
    );
    println!("cargo::rerun-if-env-changed=CC");
    let tool = cc::Build::new().cargo_output(false).get_compiler();
    let together = if tool.is_like_gnu() { flags(&["together"]) } else { vec![] };
    let compiler = tool.path().to_path_buf();
    abi::generate(&runtime.join("abi.h"), &compiler, &out);

    let zydis = zydis_sources();
    let zydis_includes = zydis_includes().map(|dir| format!("-isystem{}", dir.display()));

    // Make paths in messages and debug information relative to the source tree. If several prefixes
    // match, the last one counts.
    let place = |from: String, to: &str| format!("-ffile-prefix-map={from}={to}");
    let places = [
        place(root.display().to_string(), "."),
        place(format!("{}/", root.display()), ""),
        place(format!("{}/", zydis.display()), "zydis/"),
    ];

    let mut jobs = Vec::new();
    let objects = out.join("objects");
    for source in sources(&runtime) {
        let name = source.strip_prefix(&root).expect("below the root");
        let mut flags = flags(&["runtime", "ours", "zydis"]);
        if !APART.iter().any(|file| source.ends_with(file)) {
            flags.extend(together.iter().cloned());
        }
        flags.push(format!("-I{}", runtime.display()));
        flags.extend(zydis_includes.iter().cloned());
        flags.extend(places.iter().cloned());
        jobs.push(Job::new(&source, &object_path(&objects, name), flags));
    }
    for name in ZYDIS {
        let mut flags = flags(&["runtime", "theirs", "zydis"]);
        flags.extend(zydis_includes.iter().cloned());
        flags.push(format!("-I{}", zydis.join("src").display()));
        flags.extend(places.iter().cloned());
        let object = object_path(&objects, &Path::new("zydis").join(name));
        jobs.push(Job::new(&zydis.join(name), &object, flags));
    }

    forget_other_compiler(&compiler, &objects);
    let changed = compile(&compiler, &jobs);
    let library = out.join("liblissom.so");
    let linked = out.join("liblissom.objects");
    let link = flags(&["link"]);
    let mut list = format!("{}\n", link.join(" "));
    list.extend(jobs.iter().map(|j| format!("{}\n", j.object.display())));
    let relink =
        changed || !library.exists() || fs::read_to_string(&linked).ok().as_deref() != Some(&list);
    if relink {
        let mut command = Command::new(&compiler);
        command
            .args(flags(&["runtime", "ours"]))
            .args(together)
            .args(&places)
            .args(link)
            .arg("-o")
            .arg(&library);
        command.args(jobs.iter().map(|j| &j.object));
        run(&mut command);
        fs::write(&linked, &list).expect("writable OUT_DIR");
    }
    println!("cargo::rustc-env=LISSOM_RUNTIME={}", library.display());
    // FNV-1a hash. It distinguishes our own builds.
    let content = fs::read(&library).expect("the library that was linked");
    let hash = content
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    println!("cargo::rustc-env=LISSOM_RUNTIME_HASH={hash:016x}");

    // A copy for debuggers and for preloading by hand: target/<profile>/liblissom.so.
    if let Some(profile) = out.ancestors().nth(3) {
        // Replace the file instead of overwriting it: a running program may have mapped the old
        // one.
        let temporary = profile.join(format!(".liblissom.so.{}", std::process::id()));
        if fs::copy(&library, &temporary).is_ok() {
            let _ = fs::rename(&temporary, profile.join("liblissom.so"));
        }
    }
}

fn object_path(objects: &Path, source: &Path) -> PathBuf {
    let name: Vec<String> = source.iter().map(|p| p.to_string_lossy().into_owned()).collect();
    objects.join(format!("{}.o", name.join("-")))
}

struct Job {
    source: PathBuf,
    object: PathBuf,
    flags: Vec<String>,
}

impl Job {
    fn new(source: &Path, object: &Path, flags: Vec<String>) -> Job {
        Job { source: source.to_path_buf(), object: object.to_path_buf(), flags }
    }

    /// Return the command line as text. It is kept beside the object, so that new flags compile it
    /// again.
    fn stamp(&self, compiler: &Path) -> String {
        format!("{} {} {}", compiler.display(), self.flags.join(" "), self.source.display())
    }

    fn up_to_date(&self, compiler: &Path) -> bool {
        let modified = |p: &Path| fs::metadata(p).and_then(|m| m.modified()).ok();
        let Some(built): Option<SystemTime> = modified(&self.object) else {
            return false;
        };
        if fs::read_to_string(self.object.with_extension("cmd")).ok() != Some(self.stamp(compiler))
        {
            return false;
        }
        let Ok(rule) = fs::read_to_string(self.object.with_extension("d")) else {
            return false;
        };
        // `object: source header header \ ...`. A path with a space only means compiling again.
        rule.replace("\\\n", " ").split_once(": ").is_some_and(|(_, files)| {
            files.split_whitespace().all(|f| modified(Path::new(f)).is_some_and(|m| m <= built))
        })
    }
}

/// Delete all objects if another version of the compiler made them: GCC cannot link its LTO
/// objects.
fn forget_other_compiler(compiler: &Path, objects: &Path) {
    let version = Command::new(compiler).arg("--version").output().map(|o| o.stdout);
    let version = version.unwrap_or_default();
    let noted = objects.join("compiler");
    if fs::read(&noted).ok().as_ref() != Some(&version) {
        let _ = fs::remove_dir_all(objects);
        fs::create_dir_all(objects).expect("writable OUT_DIR");
        fs::write(noted, version).expect("writable OUT_DIR");
    }
}

/// Compile what is out of date, with as many processes as cargo allows. Returns whether anything
/// was.
fn compile(compiler: &Path, jobs: &[Job]) -> bool {
    if let Some(dir) = jobs.first().and_then(|j| j.object.parent()) {
        fs::create_dir_all(dir).expect("writable OUT_DIR");
    }
    let stale: Vec<&Job> = jobs.iter().filter(|j| !j.up_to_date(compiler)).collect();
    let todo = Mutex::new(stale.iter());
    let workers = env::var("NUM_JOBS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = todo.lock().ok().and_then(|mut t| t.next());
                    let Some(job) = next else { break };
                    let mut command = Command::new(compiler);
                    command.args(&job.flags).args(["-MD", "-MF"]);
                    command.arg(job.object.with_extension("d"));
                    command.arg("-c").arg(&job.source).arg("-o").arg(&job.object);
                    run(&mut command);
                    fs::write(job.object.with_extension("cmd"), job.stamp(compiler))
                        .expect("writable OUT_DIR");
                }
            });
        }
    });
    !stale.is_empty()
}
