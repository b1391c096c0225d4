//! Build programs of tests/programs when a case first needs them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use super::run;

/// Return the path of the built program `NAME` or `NAME@VARIANT`.
pub fn program(name: &str) -> Result<PathBuf, String> {
    // One build at a time: two cases may want the same program.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _guard = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);

    let (stem, variant) = name.split_once('@').map_or((name, None), |(n, v)| (n, Some(v)));
    let folder = super::run::root().join("tests/programs");
    let source = ["c", "cpp", "rs"]
        .iter()
        .map(|extension| folder.join(format!("{stem}.{extension}")))
        .find(|path| path.exists())
        .ok_or_else(|| format!("tests/programs has no {stem}.c, .cpp or .rs"))?;
    let built = run::target_dir().join("testprogs");
    fs::create_dir_all(&built).map_err(|e| format!("{}: {e}", built.display()))?;
    let output = built.join(name);
    let command = command_line(&source, &folder, variant, &output)?;

    let stamp = built.join(format!(".{name}.cmd"));
    let fresh = fs::read_to_string(&stamp).is_ok_and(|old| old == command.join(" "))
        && newest(&source, &folder).is_some_and(|s| modified(&output).is_some_and(|o| o >= s));
    if fresh {
        return Ok(output);
    }
    let _ = fs::remove_file(&output);
    let result = Command::new(&command[0])
        .args(&command[1..])
        .output()
        .map_err(|e| format!("{}: {e}; the case should REQUIRE it", command[0]))?;
    if !result.status.success() {
        return Err(format!("{}\n{}", command.join(" "), String::from_utf8_lossy(&result.stderr)));
    }
    fs::write(&stamp, command.join(" ")).map_err(|e| e.to_string())?;
    Ok(output)
}

fn modified(path: &Path) -> Option<std::time::SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

/// Time of the last change to the source or to any header that it might include.
fn newest(source: &Path, folder: &Path) -> Option<std::time::SystemTime> {
    let headers = fs::read_dir(folder).ok()?.flatten().map(|e| e.path());
    let headers = headers.filter(|p| p.extension().is_some_and(|e| e == "h" || e == "hpp"));
    headers.chain([source.to_path_buf()]).filter_map(|p| modified(&p)).max()
}

fn command_line(
    source: &Path,
    folder: &Path,
    variant: Option<&str>,
    output: &Path,
) -> Result<Vec<String>, String> {
    let text = fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
    let directive = |key: &str| {
        let prefix = format!("// {key}:");
        text.lines().take(20).find_map(|l| l.strip_prefix(&prefix).map(|v| v.trim().to_string()))
    };
    let flags = match variant {
        None => directive("build").unwrap_or_default(),
        Some(variant) => directive(&format!("build@{variant}"))
            .ok_or_else(|| format!("{} has no line '// build@{variant}:'", source.display()))?,
    };
    let compiler =
        variant.and_then(|v| directive(&format!("compiler@{v}"))).or_else(|| directive("compiler"));
    let (default, base): (&str, &[&str]) = match source.extension().and_then(|e| e.to_str()) {
        Some("rs") => ("rustc", &["--edition", "2021", "-O", "-g"]),
        Some("cpp") => {
            ("g++", &["-std=c++20", "-O2", "-g", "-Wall", "-Werror=unknown-pragmas", "-pthread"])
        }
        _ => ("gcc", &["-std=gnu11", "-O2", "-g", "-Wall", "-Werror=unknown-pragmas", "-pthread"]),
    };
    let mut command = vec![compiler.unwrap_or_else(|| default.to_string())];
    command.extend(base.iter().map(|s| s.to_string()));
    if default != "rustc" {
        command.push(format!("-I{}", folder.display()));
    }
    command.push(source.display().to_string());
    // A shared library must not add its constructor to that of the program that loads it.
    if default != "rustc" && !flags.split_whitespace().any(|flag| flag == "-shared") {
        command.push(folder.with_file_name("runner/witness.c").display().to_string());
    }
    command.extend(["-o".into(), output.display().to_string()]);
    let built = run::target_dir().join("testprogs").display().to_string();
    command.extend(flags.split_whitespace().map(|f| f.replace("{testprogs}", &built)));
    Ok(command)
}
