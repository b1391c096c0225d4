//! Progress rates of programs under lissom: how many waits of their threads for each other ended.
//! Each program has its own unit, so compare a rate only with earlier rates of the same program.

use std::collections::BTreeMap;
use std::time::Duration;

use super::feedback::Progress;
use super::server::Report;
use watch::activity::Id;

/// Values that programs reported at the end of the last period.
#[derive(Default)]
pub struct Rates {
    before: BTreeMap<Id, Told>,
}

#[derive(Clone, Copy)]
struct Told {
    heartbeat: u64,
    waits: u64,
}

impl Rates {
    /// Return the progress of the programs in `targets` since the last call, which was `period`
    /// ago. The rate is None if the program is new, its monitor sleeps, or no wait of its threads
    /// ended.
    pub fn since_last(
        &mut self,
        reports: &BTreeMap<Id, Report>,
        targets: &BTreeMap<Id, u32>,
        period: Duration,
    ) -> Vec<Progress> {
        let told = |r: &Report| Told { heartbeat: r.heartbeat, waits: r.waits };
        let rate = |id: Id| {
            let (now, before) = (told(reports.get(&id)?), self.before.get(&id)?);
            let waits = now.waits.checked_sub(before.waits).filter(|&n| n > 0)?;
            (now.heartbeat != before.heartbeat).then(|| waits as f64 / period.as_secs_f64())
        };
        let progress =
            targets.iter().map(|(&id, &target)| Progress { id, target, rate: rate(id) }).collect();
        self.before = reports.iter().map(|(&id, report)| (id, told(report))).collect();
        progress
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(heartbeat: u64, waits: u64) -> Report {
        Report { is_malleable: true, slots: 1, limit: 2, cpus: vec![0], heartbeat, waits }
    }

    #[test]
    fn rates_of_a_period() {
        let mut rates = Rates::default();
        let targets = BTreeMap::from([(1, 2), (2, 1), (3, 1), (4, 1)]);
        let mut look = |list: &[(Id, u64, u64)]| -> Vec<Option<f64>> {
            let reports = list.iter().map(|&(id, beat, waits)| (id, report(beat, waits))).collect();
            let found = rates.since_last(&reports, &targets, Duration::from_millis(100));
            assert!(
                found.iter().map(|p| (p.id, p.target)).eq(targets.iter().map(|(&i, &t)| (i, t)))
            );
            found.iter().map(|p| p.rate).collect()
        };
        assert_eq!(look(&[(1, 5, 100), (2, 5, 7), (3, 5, 50)]), [None; 4]);
        // Program 1 progresses; 2 does not wait; the monitor of 3 sleeps; 4 is not connected.
        assert_eq!(look(&[(1, 6, 150), (2, 6, 7), (3, 5, 50)]), [Some(500.0), None, None, None]);
        // A count that decreased is of another process with the same number, or nonsense.
        assert_eq!(look(&[(1, 7, 3), (2, 7, 8), (4, 1, 1)]), [None, Some(10.0), None, None]);
    }
}
