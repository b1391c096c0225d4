//! Suites that the user has built: NPB, PARSEC, SPLASH or others. lissom contains none of them;
//! papers.rs has programs written from their specifications.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::super::command::{after, words};
use super::catalogue::{Kind, Ready};
use super::check::holds;

/// The original programs of suites.
#[derive(Default, Clone, clap::Args)]
pub struct Suites {
    /// Measure the original programs of a suite that you have built (repeatable). DIR is NPB's
    /// folder with bin/cg.A.x (OpenMP), PARSEC 3.0's with bin/parsecmgmt, or any folder with
    /// lissom-programs.json in the format of `bench programs --catalogue`
    #[arg(long = "suite", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
}

impl Suites {
    pub fn are_given(&self) -> bool {
        !self.folders.is_empty()
    }

    pub fn programs(&self) -> anyhow::Result<Vec<Ready>> {
        let mut list = Vec::new();
        for folder in &self.folders {
            list.extend(if folder.join(CATALOGUE).exists() {
                catalogue(folder)?
            } else if folder.join("bin/parsecmgmt").exists() {
                parsec(folder)?
            } else {
                npb(folder)?
            });
        }
        Ok(list)
    }
}

/// NPB's programs, and how their threads wait.
const NPB: [(&str, Kind); 10] = [
    ("bt", Kind::Mixed),
    ("cg", Kind::Mixed),
    ("dc", Kind::None),
    ("ep", Kind::None),
    ("ft", Kind::Mixed),
    ("is", Kind::Mixed),
    ("lu", Kind::Spinning),
    ("mg", Kind::Mixed),
    ("sp", Kind::Mixed),
    ("ua", Kind::Mixed),
];

/// Return the programs of NPB in bin/: their names are PROGRAM.CLASS or PROGRAM.CLASS.x.
fn npb(folder: &Path) -> anyhow::Result<Vec<Ready>> {
    let mut list = Vec::new();
    for path in files(&folder.join("bin")).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let Some((program, class)) = name.trim_end_matches(".x").split_once('.') else { continue };
        let Some((_, kind)) = NPB.iter().find(|(n, _)| *n == program) else { continue };
        if class.len() != 1 {
            continue;
        }
        let name = format!("npb-{program}.{class}");
        let command = move |threads| words!["env", format!("OMP_NUM_THREADS={threads}"), path];
        // "Verification = SUCCESSFUL", or "VERIFICATION SUCCESSFUL" if checked before the end.
        let is_good = |output: &str| {
            let output = output.to_lowercase();
            output.contains("successful") && !output.contains("unsuccessful")
        };
        let check = Some(holds(is_good, "its verification failed"));
        list.push(Ready { check, ..Ready::of(name, *kind, command) });
    }
    if list.is_empty() {
        bail!(
            "--suite {}: found neither NPB's bin/cg.A.x (`make cg CLASS=A`), nor PARSEC's \
             bin/parsecmgmt, nor {CATALOGUE}",
            folder.display()
        );
    }
    Ok(list)
}

/// PARSEC's programs, and how their threads wait. Other programs are assumed to block.
const PARSEC: [(&str, Kind); 4] = [
    ("blackscholes", Kind::None),
    ("swaptions", Kind::None),
    ("freqmine", Kind::Mixed),
    ("streamcluster", Kind::Blocking),
];

/// Return PARSEC's programs that were built. `parsecmgmt` runs them with the input `simlarge`.
fn parsec(folder: &Path) -> anyhow::Result<Vec<Ready>> {
    let manager = folder.join("bin/parsecmgmt");
    let mut list = Vec::new();
    for group in ["apps", "kernels"] {
        for package in files(&folder.join("pkgs").join(group)).unwrap_or_default() {
            if !package.join("inst").is_dir() {
                continue;
            }
            let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kind = PARSEC.iter().find(|(n, _)| *n == name).map_or(Kind::Blocking, |(_, k)| *k);
            let full_name = format!("parsec-{name}");
            let run = words![manager, "-a", "run", "-p", name, "-i", "simlarge", "-n"];
            let command = move |threads: u32| after(&run, &words![threads.to_string()]);
            list.push(Ready::of(full_name, kind, command));
        }
    }
    if list.is_empty() {
        bail!(
            "--suite {}: no program of PARSEC is built; run `bin/parsecmgmt -a build -p all`",
            folder.display()
        );
    }
    Ok(list)
}

/// A program in a catalogue.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// `{threads}` stands for the number of threads. The program's path may be relative to the
    /// catalogue's folder.
    command: Vec<String>,
    #[serde(default = "blocking")]
    kind: String,
    /// Text that the output must contain.
    check: Option<String>,
}

fn blocking() -> String {
    "blocking".into()
}

/// Name of the catalogue in a suite's folder.
pub const CATALOGUE: &str = "lissom-programs.json";

/// Read a catalogue. `path`: the file, or a folder with `CATALOGUE`.
pub fn catalogue(path: &Path) -> anyhow::Result<Vec<Ready>> {
    let file = if path.is_dir() { path.join(CATALOGUE) } else { path.to_path_buf() };
    let text = fs::read_to_string(&file).with_context(|| {
        format!("cannot read the catalogue {} (--catalogue names it)", file.display())
    })?;
    let entries: Vec<Entry> = serde_json::from_str(&text).with_context(|| {
        format!(
            "{}: expected a list [{{\"name\": ..., \"command\": [..., \"{{threads}}\"], \
             \"kind\": \"none|blocking|spinning|mixed\", \"check\": ...}}]",
            file.display()
        )
    })?;
    // The parent of a bare file name would be empty.
    let file = std::path::absolute(&file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    entries.into_iter().map(|entry| ready(entry, folder)).collect()
}

fn ready(entry: Entry, folder: &Path) -> anyhow::Result<Ready> {
    let kind = <Kind as clap::ValueEnum>::from_str(&entry.kind, false).map_err(|_| {
        anyhow::anyhow!("{}: kind must be none, blocking, spinning or mixed", entry.name)
    })?;
    let Some(program) =
        entry.command.first().filter(|_| entry.command.iter().any(|w| w.contains("{threads}")))
    else {
        bail!("{}: its command must contain {{threads}}, the number of threads", entry.name);
    };
    let program: PathBuf =
        if program.contains('/') { folder.join(program) } else { program.into() };
    let (words, expected) = (entry.command, entry.check);
    let command = move |threads: u32| {
        let options = words.iter().skip(1).map(|w| w.replace("{threads}", &threads.to_string()));
        words![program].into_iter().chain(options.map(OsString::from)).collect()
    };
    let check = expected.map(|expected| {
        let why = format!("its output does not contain `{expected}`");
        holds(move |output| output.contains(&expected), why)
    });
    Ok(Ready { check, ..Ready::of(entry.name, kind, command) })
}

/// List the files in a folder, by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut list: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    list.sort();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::super::super::child::Scratch;
    use super::super::super::command::shown;
    use super::*;

    fn words(ready: &Ready, threads: u32) -> Vec<String> {
        shown(&(ready.command)(threads))
    }

    #[test]
    fn npb_is_recognised() {
        let scratch = Scratch::create().expect("a folder");
        fs::create_dir(scratch.path().join("bin")).expect("a folder");
        for name in ["lu.A.x", "cg.S", "readme", "setparams.c", "lu.AB.x"] {
            scratch.write(&format!("bin/{name}"), "").expect("a file");
        }
        let list = npb(scratch.path()).expect("programs");
        let names: Vec<&str> = list.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["npb-cg.s", "npb-lu.a"]);
        assert!(list[1].kind == Kind::Spinning && words(&list[0], 7)[1] == "OMP_NUM_THREADS=7");
        let check = list[0].check.as_ref().expect("a check");
        assert_eq!(check(" Verification    =               SUCCESSFUL\n"), None);
        assert!(
            check(" Verification    =             UNSUCCESSFUL\n").is_some() && check("").is_some()
        );
        assert!(npb(&scratch.path().join("bin")).is_err());
        let suites = Suites { folders: vec![scratch.path().into()] };
        assert_eq!(suites.programs().expect("programs").len(), 2);
    }

    #[test]
    fn parsec_is_recognised_where_it_was_built() {
        let scratch = Scratch::create().expect("a folder");
        let make = |path: &str| fs::create_dir_all(scratch.path().join(path)).expect("a folder");
        make("bin");
        make("pkgs/apps/ferret/inst/amd64-linux.gcc");
        make("pkgs/apps/vips/src");
        scratch.write("bin/parsecmgmt", "").expect("a file");
        let list = parsec(scratch.path()).expect("programs");
        assert_eq!(list.len(), 1);
        assert_eq!(words(&list[0], 8)[1..].join(" "), "-a run -p ferret -i simlarge -n 8");
    }

    #[test]
    fn catalogues_are_checked() {
        let scratch = Scratch::create().expect("a folder");
        let write = |text: &str| scratch.write(CATALOGUE, text).expect("a file");
        write(
            r#"[{"name": "fft", "command": ["./FFT", "-p{threads}"], "kind": "mixed", "check": "ok"}]"#,
        );
        let list = catalogue(scratch.path()).expect("programs");
        assert!(words(&list[0], 4)[0].ends_with("/./FFT") && words(&list[0], 4)[1] == "-p4");
        let check = list[0].check.as_ref().expect("a check");
        assert!(check("all ok").is_none() && check("no").is_some());
        write(r#"[{"name": "fft", "command": ["fft"]}]"#);
        assert!(catalogue(scratch.path()).is_err_and(|e| e.to_string().contains("{threads}")));
        write(r#"[{"name": "fft", "command": ["fft", "{threads}"], "kind": "x"}]"#);
        assert!(catalogue(scratch.path()).is_err());
        assert!(catalogue(Path::new("/nowhere")).is_err());
    }
}
