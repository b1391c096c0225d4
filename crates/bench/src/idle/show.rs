//! The tables of the report.

use super::super::columns::{Field, Section, Table};
use super::super::document::{Results, notes};
use super::super::harness::{Cell, NATIVE};
use super::report::{Figures, Kind, Measured, Options, Policies, Target};
use ui::text::plural;

impl Results for Policies {
    type Options = Options;

    /// A missed target is a result, not a failure.
    fn is_bad(&self) -> bool {
        self.groups.iter().any(|g| g.measured.is_bad())
    }

    fn legend(&self, options: &Options) -> String {
        format!(
            "lissom run --switch={} --share={}. Median (and least-most) of {}. program, computes: \
             throughput of the program and of the one that computes, relative to native in the \
             same round; both: their geometric mean. vol/s, inv/s: voluntary and involuntary \
             context switches a second. CPUs: average number that the program uses.",
            options.switch,
            options.share,
            plural(options.rounds as u64, "round"),
        )
    }

    fn tables(&self, options: &Options) -> Vec<Table<'_>> {
        let has_watts = self.groups.iter().flat_map(|g| &g.figures).any(|f| f.watts.is_some());
        let mut tables: Vec<Table> = [Kind::Pair, Kind::Alone, Kind::Idle]
            .map(|kind| table(kind, &self.groups, options, has_watts))
            .into();
        for (is_idle, title) in [
            (
                false,
                "haltpoll's throughput relative to the better of sleep and poll (target: 0.97)",
            ),
            (true, "haltpoll's CPU time minus sleep's, almost idle, in % of a CPU (target: 2)"),
        ] {
            let list = self.targets.iter().filter(|t| (t.kind == Kind::Idle) == is_idle);
            let columns = if is_idle { &["", "better", "", "", "", ""] } else { &TARGET_COLUMNS };
            tables.push(Table::plain(title, columns, list.map(target).collect()));
        }
        tables
    }

    fn notes(&self, options: &Options) -> Vec<String> {
        let groups = self.groups.iter().map(|g| (place(g), &g.measured));
        notes(groups, options.timeout, (NATIVE, "native itself"))
    }
}

fn place(group: &Measured) -> String {
    let kind = if group.kind == Kind::Pair { ", pair" } else { "" };
    format!("{}{kind}", group.measured.place())
}

fn table<'a>(kind: Kind, groups: &'a [Measured], options: &Options, has_watts: bool) -> Table<'a> {
    let title = match kind {
        Kind::Pair => format!(
            "Beside a program that computes with {}; context switches of both",
            plural(options.cpus.into(), "thread")
        ),
        Kind::Alone => "Alone".into(),
        Kind::Idle => "Almost idle; CPU time in % of a CPU".into(),
    };
    let time = if kind == Kind::Idle { "% of a CPU" } else { "us a round" };
    let throughput: &[&str] = match kind {
        Kind::Pair => &["program", "computes", "both"],
        Kind::Alone => &["program"],
        Kind::Idle => &[],
    };
    let watts: &[&str] = if has_watts { &["W"] } else { &[] };
    let row = |(cell, f): (&'a Cell, &Figures)| -> Vec<Field<'a>> {
        let throughput = &[f.program, f.computes, f.both][..throughput.len()];
        let used = [f.voluntary, f.involuntary, f.cpus, f.watts];
        [cell.scenario.into(), Field::Cell(cell)]
            .into_iter()
            .chain(throughput.iter().chain(&used[..3 + watts.len()]).map(|s| Field::Median(*s)))
            .collect()
    };
    let section = |group: &'a Measured| Section {
        title: format!("{}:", group.measured.place()),
        keys: vec![group.measured.workload.clone(), group.measured.threads.to_string()],
        rows: group.measured.cells.iter().zip(&group.figures).map(row).collect(),
    };
    Table {
        title,
        keys: vec!["program", "threads"],
        columns: [&["", time], throughput, &["vol/s", "inv/s", "CPUs"], watts].concat(),
        sections: groups.iter().filter(|g| g.kind == kind).map(section).collect(),
    }
}

const TARGET_COLUMNS: [&str; 6] = ["", "better", "both", "program", "computes", "target"];

fn target<'a>(t: &Target) -> Vec<Field<'a>> {
    let pair = if t.kind == Kind::Pair { ", pair" } else { "" };
    vec![
        format!("{}, {}{pair}", t.workload, t.threads).into(),
        t.against.into(),
        Field::Spread(Some(t.value)),
        Field::Median(t.program),
        Field::Median(t.computes),
        t.verdict.text().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::document::Document;
    use super::super::super::harness::State;
    use super::super::super::machine::Machine;
    use super::super::report::tests::group;
    use super::super::report::{self, Verdict};
    use super::*;

    #[test]
    fn the_tables_fit() {
        let wide = [(12_345.678, 1e6), (98_765.4, 9e5), (11_111.1, 8e5), (11_350.2, 7.8e5)];
        let mut groups: Vec<Measured> =
            [Kind::Pair, Kind::Alone, Kind::Idle].map(|kind| group(kind, wide)).into();
        groups[0].measured.cells[1].native_because = Some("a reason".into());
        groups[1].measured.cells[0].state = State::Timeout;
        groups[0].figures[2].watts = groups[0].figures[2].cpus;
        let mut targets: Vec<Target> = groups.iter().flat_map(report::targets).collect();
        targets[0].verdict = Verdict::Unsure; // the longest
        let options = Options {
            cpus: 2,
            rounds: 3,
            seconds: 0.5,
            timeout: 30.0,
            switch: "auto",
            share: "auto",
        };
        let results = Policies { groups, targets };
        let report = Document::of("idle", Machine::look(), options, results);
        let text = report.text();
        let long: Vec<&str> = text.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert!(
            text.contains("gomp-barrier, 128 threads:") && text.contains("  timeout"),
            "{text}"
        );
        assert!(text.contains("sleep ran natively: a reason"), "{text}");
        assert!(
            text.contains("gomp-barrier, 128, pair") && text.contains("missed (noise)"),
            "{text}"
        );
        let markdown = report.markdown();
        let widths =
            markdown.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count());
        let widths: Vec<usize> = widths.collect();
        assert_eq!((widths[0], widths[1], widths[2]), (12, 12, 12), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
