//! Find the running scheduler by its maps in the kernel, whichever process started it.

use std::fs;

use anyhow::{Context as _, bail};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::layout::State;
use super::load;

pub struct Running {
    pub state: State,
    /// IDs and names of its maps.
    maps: Vec<(u32, String)>,
}

impl Running {
    /// A handle of the map, which stays valid when the scheduler's process ends.
    pub fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        let id = self.maps.iter().find(|(_, n)| n == name).map(|(id, _)| *id);
        let id = id.with_context(|| {
            format!("the scheduler has no map {name}: it is from another version of lissom")
        })?;
        MapHandle::from_map_id(id).with_context(|| format!("cannot read the map {name}"))
    }

    /// The scheduler's process holds its maps open as long as it runs.
    pub fn is_alive(&self) -> bool {
        !held_by(self.state.pid).is_empty()
    }
}

/// Returns None if no scheduler runs. Fails without CAP_SYS_ADMIN, which finding maps requires, and
/// if the scheduler is of another version.
pub fn running() -> anyhow::Result<Option<Running>> {
    if !os::process::is_admin() {
        bail!("cannot see loaded schedulers: run as root, or with CAP_SYS_ADMIN");
    }
    let all: Vec<(u32, String)> =
        MapInfoIter::default().map(|m| (m.id, m.name.to_string_lossy().into_owned())).collect();
    let mut is_other_version = false;
    for (id, _) in all.iter().filter(|(_, name)| name == load::STATE) {
        // The map may disappear meanwhile.
        let Ok(map) = MapHandle::from_map_id(*id) else { continue };
        let Ok(Some(bytes)) = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY) else { continue };
        let Some(state) = State::parse(&bytes) else {
            is_other_version = true;
            continue;
        };
        // A process that has this very map open runs the scheduler: its ID was not reused.
        let held = held_by(state.pid);
        if held.contains(id) {
            let maps = all.iter().filter(|(id, _)| held.contains(id)).cloned().collect();
            return Ok(Some(Running { state, maps }));
        }
    }
    if is_other_version {
        bail!("the running scheduler is from another version of lissom: use that version's binary");
    }
    Ok(None)
}

/// IDs of the maps that a process has open.
fn held_by(pid: u32) -> Vec<u32> {
    let files = fs::read_dir(format!("/proc/{pid}/fdinfo"));
    let id =
        |text: String| text.lines().find_map(|l| l.strip_prefix("map_id:")?.trim().parse().ok());
    files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|f| id(fs::read_to_string(f.path()).ok()?))
        .collect()
}
