//! The tables of the report.

use super::super::columns::{Field, Section, Table};
use super::super::document::{Results, notes};
use super::report::{ALONE, Applications, Measured, NEIGHBOUR, Options};
use ui::text::plural;

const NAMES: [&str; 7] = ["", "throughput", "x alone", "beside", "cs/s", "cs", "CPU"];

impl Results for Applications {
    type Options = Options;

    fn is_bad(&self) -> bool {
        self.left_out.iter().any(|l| l.is_broken) || self.groups.iter().any(|g| g.measured.is_bad())
    }

    fn legend(&self, options: &Options) -> String {
        format!(
            "lissom run --switch={} --share={}; {}, {} of a server. Median (and least-most) of \
             {}. mixed: beside matrix multiplication (in rows a second); same: beside a second \
             copy. x alone, beside: throughput of the application and of the program beside it, \
             relative to each alone, natively. cs/s: context switches of the application a \
             second. cs, CPU: its context switches and CPU time per unit of work, relative to \
             sleep.",
            options.switch,
            options.share,
            plural(options.threads.into(), "thread"),
            plural(options.clients.into(), "connection"),
            plural(options.rounds as u64, "round"),
        )
    }

    fn tables(&self, _options: &Options) -> Vec<Table<'_>> {
        let has_watts = self.groups.iter().flat_map(|g| &g.figures).any(|f| f.watts.is_some());
        let watts: &[&str] = if has_watts { &["W"] } else { &[] };
        vec![Table {
            title: String::new(),
            keys: vec!["application", "of the paper"],
            columns: [&NAMES, watts].concat(),
            sections: self.groups.iter().map(|group| section(group, has_watts)).collect(),
        }]
    }

    fn notes(&self, options: &Options) -> Vec<String> {
        let left_out = self.left_out.iter();
        let mut lines: Vec<String> =
            left_out.map(|l| format!("{} is left out: {}", l.application, l.why)).collect();
        let groups = self.groups.iter().map(|g| (g.measured.workload.clone(), &g.measured));
        lines.extend(notes(groups, options.timeout, (ALONE, "native throughput alone")));
        lines
    }
}

fn section(group: &Measured, has_watts: bool) -> Section<'_> {
    let measured = &group.measured;
    let stands_for = if measured.workload == group.paper.to_lowercase() {
        String::new()
    } else {
        format!(" for {}", group.paper)
    };
    let rows = measured.cells.iter().zip(&group.figures).map(|(cell, f)| {
        let name = if cell.scenario == NEIGHBOUR { "matmul alone" } else { cell.scenario };
        let to_sleep = [f.to_sleep.switches, f.to_sleep.cpu];
        let medians = [f.program, f.beside, f.switches_per_second].into_iter().chain(to_sleep);
        let medians = medians.chain(has_watts.then_some(f.watts)).map(Field::Median);
        [name.into(), Field::Cell(cell)].into_iter().chain(medians).collect()
    });
    Section {
        title: format!("{}{stands_for}: {}", measured.workload, measured.metric.unit),
        keys: vec![measured.workload.clone(), group.paper.into()],
        rows: rows.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::document::Document;
    use super::super::super::harness::State;
    use super::super::super::machine::Machine;
    use super::super::report::LeftOut;
    use super::super::report::tests::group;
    use super::*;

    #[test]
    fn the_tables_fit() {
        let mut measured = group();
        for place in [3, 4] {
            measured.measured.cells[place].native_because = Some("one thread".into());
        }
        measured.measured.cells[5].state = State::Timeout;
        measured.figures[6].watts = measured.figures[6].switches;
        let options = Options {
            cpus: 2,
            threads: 2,
            clients: 8,
            rounds: 3,
            seconds: 0.5,
            timeout: 30.0,
            switch: "auto",
            share: "auto",
        };
        let results = Applications {
            groups: vec![measured],
            left_out: vec![LeftOut {
                application: "dbench",
                why: "apt-get install dbench".into(),
                is_broken: false,
            }],
        };
        let report = Document::of("smt", Machine::look(), options, results);
        let shown = report.text();
        let long: Vec<&str> = shown.lines().filter(|l| l.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
        assert!(shown.contains("\ndedup: MiB a second\n"), "{shown}");
        assert!(shown.contains("  mixed sleep ") && shown.contains("  matmul alone "), "{shown}");
        assert!(
            shown.contains("dedup: mixed sleep, mixed poll ran natively: one thread"),
            "{shown}"
        );
        assert!(shown.contains("dbench is left out: apt-get install dbench"), "{shown}");
        let markdown = report.markdown();
        let widths =
            markdown.lines().filter(|l| l.starts_with('|')).map(|l| l.matches('|').count());
        assert!(widths.into_iter().all(|w| w == 11), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
