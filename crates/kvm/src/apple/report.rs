//! Reports about VMs: a table, or one JSON document per line.

use serde_json::{Value, json};
use ui::text::row;

use super::machine::{Interval, Machine};

const WIDTHS: [isize; 10] = [8, -11, 5, 7, 8, 6, 8, 7, 6, 5];
const TITLES: [&str; 10] = [
    "PID", "PROGRAM", "VCPUS", "WINDOW", "EXITS/S", "SPUN%", "SWITCH%", "WASTED%", "ROUNDS",
    "MOVES",
];

/// The table, of at most 80 columns. seconds: length of the interval.
pub fn table(intervals: &[Interval], seconds: f64, applies: bool) -> String {
    let mut rows = vec![row(&WIDTHS, &TITLES)];
    for Interval { machine: m, counters, waste } in intervals {
        let (rounds, moves) = m.apple.rounds();
        let count = |n: u32| if applies { n.to_string() } else { "-".into() };
        let percent = |part: u64| format!("{:.1}", 100.0 * waste.share(part));
        let cells = [
            m.vm.pid.to_string(),
            m.program.clone(),
            m.vm.vcpus.to_string(),
            window(m).to_string(),
            format!("{:.0}", counters.ple as f64 / seconds),
            percent(waste.spinning),
            percent(waste.switches),
            percent(waste.total()),
            count(rounds),
            count(moves),
        ];
        rows.push(row(&WIDTHS, &cells));
    }
    if intervals.is_empty() {
        rows.push("no VM has run since lissom_ple was loaded".into());
    }
    rows.join("\n") + "\n"
}

/// The window in force, in the CPU's unit.
fn window(machine: &Machine) -> u32 {
    machine.vm.window.unwrap_or(machine.vm.own)
}

pub fn document(intervals: &[Interval], seconds: f64, applies: bool) -> Value {
    let vm = |Interval { machine: m, counters, waste }: &Interval| {
        let mut vm = json!({
            "pid": m.vm.pid, "name": m.program, "vcpus": m.vm.vcpus,
            "window": window(m), "kvm_window": m.vm.own, "is_replaced": m.vm.window.is_some(),
            "exits_per_s": counters.ple as f64 / seconds,
            "entries": counters.entries, "entries_with_window": counters.applied,
            "spinning": waste.share(waste.spinning), "switches": waste.share(waste.switches),
            "inefficiency": waste.share(waste.total()),
        });
        if applies {
            let (rounds, moves) = m.apple.rounds();
            vm["base"] = m.apple.base().into();
            vm["rounds"] = rounds.into();
            vm["moves"] = moves.into();
        }
        vm
    };
    let vms: Vec<Value> = intervals.iter().map(vm).collect();
    json!({ "seconds": seconds, "applies": applies, "vms": vms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapt::Limits;
    use crate::apple::device::{Counters, Vm};

    fn machine() -> Machine {
        let vm = Vm {
            pid: 12_345_678,
            vcpus: 64,
            window: None,
            own: 4_294_967,
            counters: Counters::default(),
        };
        let limits = Limits { lower: 512, upper: 16_384, step: 512, ..Limits::default() };
        let mut machine = Machine::new(&vm, limits, 4096);
        machine.program = "qemu-system-x86".into();
        machine
    }

    fn interval(machine: &Machine) -> Interval<'_> {
        let counters = Counters {
            entries: 90_000_000,
            applied: 0,
            ple: 80_000_000,
            spun: 100,
            before: 400,
            switches: 900,
            guest: 100,
        };
        Interval { machine, counters, waste: counters.waste(1.0) }
    }

    #[test]
    fn the_table_fits() {
        let machine = machine();
        let text = table(&[interval(&machine)], 1.0, true);
        assert!(text.lines().all(|l| l.len() <= 80), "{text}");
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        let expected = "12345678 qemu-system 64 4294967 80000000 10.0 90.0 100.0 0 0";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn the_document_says_what_is_in_force() {
        let machine = machine();
        let said = document(&[interval(&machine)], 2.0, false);
        let vm = &said["vms"][0];
        assert_eq!(
            (vm["window"].as_u64(), vm["is_replaced"].as_bool()),
            (Some(4_294_967), Some(false))
        );
        assert_eq!(
            (vm["exits_per_s"].as_f64(), vm["inefficiency"].as_f64()),
            (Some(4e7), Some(1.0))
        );
        assert!(vm["rounds"].is_null());
    }
}
