//! Read the statistics of `lissom run --stats=json`.

use serde_json::Value;

/// Return why lissom managed no process, from the output of `lissom run --stats=json`. Such a
/// program runs natively, so its time says nothing about lissom.
pub fn native_because(statistics: &Value) -> Option<String> {
    let command = &statistics["command"]["native"];
    if let Some(reason) = command.as_str() {
        return Some(reason.into());
    }
    let processes = statistics["processes"].as_array()?;
    if processes.iter().any(|p| p["state"] == "active") {
        return None;
    }
    let reason = processes.iter().find_map(|p| p["reason"].as_str());
    // A process with one thread has nothing to manage.
    if reason.is_none() && processes.iter().any(|p| p["state"] == "single") {
        return Some("its processes have one thread each".into());
    }
    Some(reason.unwrap_or("no process has reported").into())
}

/// Return how often threads waited for each other, by the runtime's counters: at futexes (blocked
/// in user space, after a short spin, or in the kernel), and in loops that yielded.
pub fn waits(statistics: &Value) -> Option<u64> {
    let processes = statistics["processes"].as_array()?;
    let names = ["blocks", "blocks_spun", "blocks_kernel", "parks"];
    let counters = processes.iter().flat_map(|p| names.map(|name| &p["counters"][name]));
    Some(counters.filter_map(Value::as_u64).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn runs_that_were_not_managed_are_noticed() {
        let by_command = json!({ "command": { "native": "a static program" }, "processes": [] });
        assert_eq!(native_because(&by_command), Some("a static program".into()));
        let process = |state: &str| json!({ "state": state, "reason": "seccomp" });
        let native = json!({ "command": { "native": null }, "processes": [process("native")] });
        assert_eq!(native_because(&native), Some("seccomp".into()));
        let both = [process("native"), process("active")];
        let one = json!({ "command": { "native": null }, "processes": both });
        assert_eq!(native_because(&one), None);
    }
}
