//! The scheduler that runs, found through its maps in the kernel: whoever started it, and from
//! where.

use std::fs;

use anyhow::{Context as _, bail};
use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle};

use super::layout::State;
use super::load;

pub struct Running {
    pub state: State,
    /// Its maps' numbers and names.
    maps: Vec<(u32, String)>,
}

impl Running {
    /// Of its own, whether or not the process that made it ends.
    pub fn map(&self, name: &str) -> anyhow::Result<MapHandle> {
        let id = self.maps.iter().find(|(_, n)| n == name).map(|(id, _)| *id);
        let id = id.with_context(|| {
            format!("the scheduler has no map {name}: it is of another version")
        })?;
        MapHandle::from_map_id(id).with_context(|| format!("the map {name} cannot be read"))
    }

    /// It holds its maps for as long as it runs.
    pub fn is_alive(&self) -> bool {
        !held_by(self.state.pid).is_empty()
    }
}

/// None: none runs. Fails without CAP_SYS_ADMIN, by which alone maps are found, and for one of
/// another version.
pub fn running() -> anyhow::Result<Option<Running>> {
    if !crate::process::is_admin() {
        bail!("only root, or who has CAP_SYS_ADMIN, can see what is loaded");
    }
    let all: Vec<(u32, String)> =
        MapInfoIter::default().map(|m| (m.id, m.name.to_string_lossy().into_owned())).collect();
    let mut is_other_version = false;
    for (id, _) in all.iter().filter(|(_, name)| name == load::STATE) {
        // It may end meanwhile.
        let Ok(map) = MapHandle::from_map_id(*id) else { continue };
        let Ok(Some(bytes)) = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY) else { continue };
        let Some(state) = State::parse(&bytes) else {
            is_other_version = true;
            continue;
        };
        // That the process has this very map open proves that it is the one, and not a later
        // process of that number.
        let held = held_by(state.pid);
        if held.contains(id) {
            let maps = all.iter().filter(|(id, _)| held.contains(id)).cloned().collect();
            return Ok(Some(Running { state, maps }));
        }
    }
    if is_other_version {
        bail!("the scheduler that runs is of another version of lissom: use that one's binary");
    }
    Ok(None)
}

/// The maps that a process has open, by number.
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
