//! Where in a program an instruction is, for people.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use procfs::process::{MMapPath, Process};

use super::layout::Site;
use crate::symbol;

/// Reading symbols takes a whole file: each site is looked up once.
#[derive(Default)]
pub struct Places(HashMap<Site, Option<String>>);

impl Places {
    /// `function+12 file`, or without the function where the file has no symbols. None: the process is gone, or the code is not of a file.
    pub fn of(&mut self, site: Site) -> Option<&str> {
        self.0.entry(site).or_insert_with(|| find(site)).as_deref()
    }
}

fn find(site: Site) -> Option<String> {
    let process = Process::new(site.pid as i32).ok()?;
    let maps = process.maps().ok()?;
    let map = maps.into_iter().find(|m| m.address.0 <= site.ip && site.ip < m.address.1)?;
    let MMapPath::Path(path) = map.pathname else { return None };
    let name = path.file_name()?.to_string_lossy().into_owned();
    let offset = site.ip - map.address.0 + map.offset;
    Some(match symbol::function_at(&inside(site.pid, &path), offset) {
        Some((function, behind)) => format!("{function}+{behind} {name}"),
        None => format!("{name}+{offset:#x}"),
    })
}

/// The file as the process sees it: it may be in a container.
fn inside(pid: u32, path: &Path) -> PathBuf {
    let below = path.strip_prefix("/").unwrap_or(path);
    Path::new("/proc").join(pid.to_string()).join("root").join(below)
}

/// Of a process, by which people know it. "?": it is gone.
pub fn program(pid: u32) -> String {
    let stat = Process::new(pid as i32).and_then(|p| p.stat());
    stat.map_or("?".into(), |s| s.comm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_this_program() {
        let site = Site { ip: of_this_program as fn() as usize as u64 + 1, pid: std::process::id() };
        let mut places = Places::default();
        let found = places.of(site).expect("a function of a file").to_string();
        assert!(found.contains("of_this_program"), "{found}");
        assert_eq!(places.of(Site { ip: 16, ..site }), None);
        assert_eq!(program(u32::MAX >> 1), "?");
    }
}
