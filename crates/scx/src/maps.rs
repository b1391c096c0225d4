//! Typed access to BPF maps.

use libbpf_rs::{MapCore, MapFlags, Result};
use zerocopy::{FromBytes, Immutable, IntoBytes, TryFromBytes};

/// Returns None if the map has no such key, or another type.
pub fn get<V: TryFromBytes>(map: &impl MapCore, key: &(impl IntoBytes + Immutable)) -> Option<V> {
    let value = map.lookup(key.as_bytes(), MapFlags::ANY).ok()??;
    V::try_read_from_bytes(&value).ok()
}

/// Add or replace an entry, as `flags` permit.
pub fn put(
    map: &impl MapCore,
    key: &(impl IntoBytes + Immutable),
    value: &(impl IntoBytes + Immutable),
    flags: MapFlags,
) -> Result<()> {
    map.update(key.as_bytes(), value.as_bytes(), flags)
}

/// Delete an entry, if it is there.
pub fn delete(map: &impl MapCore, key: &(impl IntoBytes + Immutable)) {
    let _ = map.delete(key.as_bytes());
}

/// All keys. Collects them first: after a deletion, the iteration would restart at the first key.
pub fn keys<K: FromBytes>(map: &impl MapCore) -> Vec<K> {
    map.keys().filter_map(|key| K::read_from_bytes(&key).ok()).collect()
}
