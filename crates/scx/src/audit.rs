//! Accuracy of `--detector=paper`. The judge proves each site where the paper's rule decided that a
//! thread spins. The auditor counts true and false positives by these proofs, for the columns of
//! the paper's Tables 2 and 3.

use std::collections::{HashMap, HashSet};

use libbpf_rs::{MapFlags, MapHandle};
use serde::Serialize;
use serde_json::{Value, json};

use super::layout::{AuditCounts, Program, ScanCounts, Site, SiteInfo};
use super::load::{self, Scheduler};
use super::{maps, sites};
use judge::Verdict;

/// A site whose positives are counted.
struct Entry {
    program: Program,
    /// Number of its positives that are in the sums.
    counted: u64,
}

/// Positives by verdict. A verdict counts for all positives of its site, including earlier ones.
#[derive(Default)]
struct Ledger {
    sites: HashMap<Site, Entry>,
    sums: HashMap<Program, AuditCounts>,
}

impl Ledger {
    /// Add the new positives of a site to the sums. Calls `program` only at the first call for the
    /// site.
    fn note(&mut self, site: Site, info: &SiteInfo, program: impl FnOnce() -> Program) {
        let entry =
            self.sites.entry(site).or_insert_with(|| Entry { program: program(), counted: 0 });
        if info.verdict == Verdict::Unknown {
            return;
        }
        // `seen` may decrease: when the tool writes a verdict, concurrent counts are lost.
        let new = info.seen.saturating_sub(entry.counted);
        entry.counted += new;
        for program in [entry.program, Program::ALL] {
            let sum = self.sums.entry(program).or_default();
            match info.verdict {
                Verdict::Spins => sum.true_positives += new,
                _ => sum.false_positives += new,
            }
        }
    }
}

/// Keeps the map of audits up to date. The process that runs the scheduler is its only writer.
pub struct Auditor {
    ledger: Ledger,
    sites: MapHandle,
    scans: MapHandle,
    audits: MapHandle,
}

impl Auditor {
    pub fn new(scheduler: &Scheduler) -> anyhow::Result<Auditor> {
        Ok(Auditor {
            ledger: Ledger::default(),
            sites: scheduler.handle(load::SITES)?,
            scans: scheduler.handle(load::SCANS)?,
            audits: scheduler.handle(load::AUDITS)?,
        })
    }

    /// Update the sums and the map. Call this before sites are dropped.
    pub fn follow(&mut self) -> anyhow::Result<()> {
        let all = sites::all(&self.sites);
        for (site, info) in &all {
            self.ledger.note(*site, info, || Program::of(site.pid));
        }
        let present: HashSet<Site> = all.iter().map(|(site, _)| *site).collect();
        self.ledger.sites.retain(|site, _| present.contains(site));
        // The kernel drops the programs that were scanned longest ago: drop their sums, too.
        let scanned: HashSet<Program> = maps::keys(&self.scans).into_iter().collect();
        let audits = &self.audits;
        self.ledger.sums.retain(|program, _| {
            let stays = *program == Program::ALL || scanned.contains(program);
            if !stays {
                maps::delete(audits, program);
            }
            stays
        });
        for (program, sum) in &self.ledger.sums {
            maps::put(audits, program, sum, MapFlags::ANY)?;
        }
        Ok(())
    }
}

/// Scans of one program, or of all programs, and their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Row {
    #[serde(flatten)]
    scans: ScanCounts,
    #[serde(flatten)]
    audit: AuditCounts,
}

impl Row {
    /// Positives at sites without a verdict.
    fn undecided(&self) -> u64 {
        let decided = self.audit.true_positives + self.audit.false_positives;
        self.scans.positives.saturating_sub(decided)
    }

    /// Positives per scan: the sensitivity, if the program only spins. Returns None without scans.
    fn sensitivity(&self) -> Option<f64> {
        let tries = self.scans.tries as f64;
        (tries > 0.0).then(|| self.scans.positives as f64 / tries)
    }

    /// The specificity, if the program works: positives count as false unless proven true. Returns
    /// None without scans.
    fn specificity(&self) -> Option<f64> {
        let tries = self.scans.tries as f64;
        let proven = self.audit.true_positives.min(self.scans.positives);
        (tries > 0.0).then(|| 1.0 - (self.scans.positives - proven) as f64 / tries)
    }

    fn document(&self) -> Value {
        let round = |share: Option<f64>| share.map(|s| (s * 1e6).round() / 1e6);
        let mut document = json!(self);
        document["undecided"] = json!(self.undecided());
        document["sensitivity"] = json!(round(self.sensitivity()));
        document["specificity"] = json!(round(self.specificity()));
        document
    }

    fn line(&self, pid: &str, program: &str) -> String {
        let percent = |share: Option<f64>| share.map_or("-".into(), |s| format!("{:.2}", 100. * s));
        table_row([
            pid,
            program,
            &self.scans.tries.to_string(),
            &self.scans.positives.to_string(),
            &self.audit.true_positives.to_string(),
            &self.audit.false_positives.to_string(),
            &percent(self.sensitivity()),
            &percent(self.specificity()),
        ])
    }
}

/// The scans of a scheduler that runs or has just ended.
pub struct Scans {
    total: Row,
    /// Sorted by tries, most first. Includes ended programs that the kernel still remembers.
    programs: Vec<(Program, Row)>,
}

impl Scans {
    /// Read them from the scheduler's maps, which `map` finds by name.
    pub fn read(map: impl Fn(&str) -> anyhow::Result<MapHandle>) -> anyhow::Result<Scans> {
        let counts = load::counts(&map(load::COUNTS)?)?;
        let (scans, audits) = (map(load::SCANS)?, map(load::AUDITS)?);
        let audit =
            |program: &Program| maps::get::<AuditCounts>(&audits, program).unwrap_or_default();
        let row = |program: Program| {
            let scans = maps::get(&scans, &program)?;
            Some((program, Row { scans, audit: audit(&program) }))
        };
        let mut programs: Vec<_> = maps::keys(&scans).into_iter().filter_map(row).collect();
        programs.sort_by_key(|(program, row)| (std::cmp::Reverse(row.scans.tries), program.pid));
        let all = ScanCounts { tries: counts.tries, positives: counts.positives };
        Ok(Scans { total: Row { scans: all, audit: audit(&Program::ALL) }, programs })
    }

    /// The sums over all programs.
    pub fn total_document(&self) -> Value {
        self.total.document()
    }

    /// The sums since the start, as a line for `--stats`.
    pub fn line(&self) -> String {
        let Row { scans, audit } = self.total;
        format!(
            "{} tries, {} positives ({} true, {} false) since the start",
            scans.tries, scans.positives, audit.true_positives, audit.false_positives
        )
    }

    pub fn document(&self) -> Value {
        let program = |(program, row): &(Program, Row)| {
            let mut document = row.document();
            document["pid"] = json!(program.pid);
            document["comm"] = json!(program.name());
            document
        };
        let mut document = self.total_document();
        document["programs"] = self.programs.iter().map(program).collect();
        document
    }

    /// Returns a header, a line for each of the first `most` programs, and a line for all.
    pub fn table(&self, most: usize) -> Vec<String> {
        let head = ["PID", "PROGRAM", "TRIES", "POSITIVE", "TRUE", "FALSE", "SENS %", "SPEC %"];
        let mut lines = vec![table_row(head)];
        let shown = self.programs.iter().take(most);
        lines.extend(shown.map(|(p, row)| row.line(&p.pid.to_string(), &p.name())));
        lines.push(self.total.line("", "all"));
        lines
    }
}

/// At most 80 columns, unless counts have more than nine digits.
fn table_row(cells: [&str; 8]) -> String {
    let [pid, program, tries, positives, is_true, is_false, sensitivity, specificity] = cells;
    format!(
        "{pid:>7} {program:<15.15} {tries:>9} {positives:>9} {is_true:>9} {is_false:>9} \
         {sensitivity:>6} {specificity:>6}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pid: u32) -> Program {
        Program::named(pid, "lu")
    }

    fn site(pid: u32, ip: u64) -> Site {
        Site::new(pid, ip)
    }

    fn info(verdict: Verdict, seen: u64) -> SiteInfo {
        SiteInfo::new(verdict, seen, 0)
    }

    fn sums(ledger: &Ledger, program: Program) -> (u64, u64) {
        let sum = ledger.sums.get(&program).copied().unwrap_or_default();
        (sum.true_positives, sum.false_positives)
    }

    #[test]
    fn a_verdict_counts_for_earlier_positives() {
        let mut ledger = Ledger::default();
        ledger.note(site(7, 1), &info(Verdict::Unknown, 5), || program(7));
        assert_eq!(sums(&ledger, program(7)), (0, 0));
        ledger.note(site(7, 1), &info(Verdict::Spins, 6), || unreachable!("asked twice"));
        assert_eq!(sums(&ledger, program(7)), (6, 0));
        // Only new positives count, and a count that decreased adds nothing.
        ledger.note(site(7, 1), &info(Verdict::Spins, 9), || program(0));
        ledger.note(site(7, 1), &info(Verdict::Spins, 8), || program(0));
        assert_eq!(sums(&ledger, program(7)), (9, 0));
        ledger.note(site(7, 2), &info(Verdict::Works, 2), || program(7));
        ledger.note(site(8, 2), &info(Verdict::Works, 1), || program(8));
        assert_eq!(sums(&ledger, program(7)), (9, 2));
        assert_eq!(sums(&ledger, program(8)), (0, 1));
        assert_eq!(sums(&ledger, Program::ALL), (9, 3));
    }

    fn row(tries: u64, positives: u64, true_positives: u64, false_positives: u64) -> Row {
        Row {
            scans: ScanCounts { tries, positives },
            audit: AuditCounts { true_positives, false_positives },
        }
    }

    #[test]
    fn columns_of_the_papers_tables() {
        // Table 2, MCS: sensitivity 99.90 %.
        let mcs = row(55_718, 55_665, 55_665, 0);
        assert!(mcs.line("", "mcs").ends_with(" 99.90 100.00"), "{}", mcs.line("", "mcs"));
        // Table 3, is: specificity 99.38 % (99.39 rounded). Undecided positives count as false.
        for is in [row(613_136, 3_742, 0, 3_742), row(613_136, 3_742, 0, 0)] {
            assert!(is.line("", "is").ends_with("  99.39"), "{}", is.line("", "is"));
        }
        assert_eq!(row(10, 8, 5, 1).undecided(), 2);
        assert_eq!(row(10, 8, 5, 1).specificity(), Some(0.7));
        // More proven than counted positives: the two maps were read at different moments.
        assert_eq!(row(10, 8, 9, 0).undecided(), 0);
        assert_eq!(row(10, 8, 9, 0).specificity(), Some(1.0));
        assert_eq!((row(0, 0, 0, 0).sensitivity(), row(0, 0, 0, 0).specificity()), (None, None));
    }

    #[test]
    fn documents_and_tables() {
        let scans = Scans {
            total: row(40, 20, 8, 2),
            programs: vec![(program(7), row(30, 20, 8, 2)), (program(8), row(10, 0, 0, 0))],
        };
        let document = scans.document();
        assert_eq!(
            (&document["tries"], &document["undecided"], &document["sensitivity"]),
            (&json!(40), &json!(10), &json!(0.5))
        );
        let first = &document["programs"][0];
        assert_eq!((&first["pid"], &first["comm"]), (&json!(7), &json!("lu")));
        assert_eq!((&first["true_positives"], &first["false_positives"]), (&json!(8), &json!(2)));
        let lines = scans.table(1);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("    PID PROGRAM "), "{}", lines[0]);
        assert!(lines[1].starts_with("      7 lu ") && lines[2].contains(" all "), "{lines:?}");
        assert!(lines.iter().all(|line| line.len() <= 80), "{lines:?}");
    }
}
