//! The tables of the report.

use super::super::columns::{Field, Section, Table};
use super::super::document::{Problems, Results, problem};
use super::super::harness::{Spread, State};
use super::super::noise;
use super::super::table::number;
use super::report::{Cell, IDLE, Mix, Mixes, Options, Point, Profile, Scaling, Scenario, Summary};
use ui::text::plural;

impl Results for Mixes {
    type Options = Options;

    /// A native scenario that is too slow is a result.
    fn is_bad(&self) -> bool {
        let managed = |s| matches!(s, Scenario::Lissom | Scenario::Manager | Scenario::Capped(_));
        let is_bad =
            |c: &Cell| c.state == State::Failed || c.state == State::Timeout && managed(c.scenario);
        self.mixes.iter().any(|m| m.error.is_some() || m.cells.iter().any(is_bad))
    }

    fn legend(&self, options: &Options) -> String {
        if self.mixes.is_empty() {
            return String::new();
        }
        let half = options.cpus / 2;
        format!(
            "M is malleable, N is not. Stock: natively, pinned to halves of the CPUs, with {} and \
             {}. Otherwise N has {} (oversubscription: pinned to the lower half), and M {}. \
             OpenMP's wait policy natively: {}. Median of {} (STP: least-most); seconds are \
             geometric means of at least {}. N, M: speed relative to stock; STP: their mean. N \
             alone, M, STP: speed relative to each alone, and the sum.",
            plural(half.into(), "thread"),
            options.cpus - half,
            options.rigid_threads,
            options.malleable_threads,
            super::super::name_of(&options.wait_policy),
            plural(options.runs as u64, "round"),
            plural(options.completed as u64, "run")
        )
    }

    fn tables(&self, _options: &Options) -> Vec<Table<'_>> {
        let section = |mix: &Mix| Section {
            title: format!("{}:", mix.name()),
            keys: vec![mix.name()],
            rows: mix.cells.iter().map(row).collect(),
        };
        let mixes = Table {
            title: "Together".into(),
            keys: vec!["mix"],
            columns: vec!["", "N s", "M s", "N", "M", "STP", "N alone", "M", "STP"],
            sections: self.mixes.iter().map(section).collect(),
        };
        let profile = |p: &Profile| Section {
            title: format!("{}, {} threads: {}", p.program, p.threads, shares(p)),
            keys: vec![p.program.clone(), p.threads.to_string(), shares(p)],
            rows: vec![vec![]],
        };
        let point = |p: &Point| {
            let numbers = [p.seconds, p.speedup].map(|s| Field::Spread(Some(s)));
            [p.threads.to_string().into()].into_iter().chain(numbers).collect()
        };
        let scaling = |s: &Scaling| Section {
            title: format!("{}:", s.program),
            keys: vec![s.program.clone()],
            rows: s.points.iter().map(point).collect(),
        };
        vec![
            Table::plain(
                "Alone",
                &["", "N s", "M s", "M s under lissom", "N leaves idle"],
                self.mixes.iter().filter_map(alone).collect(),
            ),
            mixes,
            Table::plain(
                "Geometric means over mixes",
                &["", "mixes", "N", "M", "STP", "N alone", "M", "STP"],
                self.summary.iter().map(summary).collect(),
            ),
            Table {
                title: "Share of the time, by number of runnable threads".into(),
                keys: vec!["program", "threads", "shares"],
                columns: vec![],
                sections: self.profile.iter().map(profile).collect(),
            },
            Table {
                title: "Seconds natively and alone, and speedup over one thread".into(),
                keys: vec!["program"],
                columns: vec!["threads", "seconds", "x one thread"],
                sections: self.scaling.iter().map(scaling).collect(),
            },
        ]
    }

    fn notes(&self, options: &Options) -> Vec<String> {
        let mut problems = Problems::default();
        for mix in &self.mixes {
            let own = mix.error.as_ref().map(|error| format!("failed: {error}"));
            let of_cells = mix.cells.iter().filter_map(|cell| {
                let problem = problem(cell.state, cell.error.as_ref(), options.timeout)?;
                Some(format!("with {} {problem}", cell.scenario.name()))
            });
            own.into_iter().chain(of_cells).for_each(|text| problems.add(&mix.name(), text));
        }
        let noise = noise::disturbed(self.mixes.iter().map(|m| (m.name(), m.others())));
        noise.into_iter().chain(problems.lines()).collect()
    }
}

fn alone<'a>(mix: &Mix) -> Option<Vec<Field<'a>>> {
    let alone = mix.alone.as_ref()?;
    let times = [alone.rigid, alone.malleable, alone.under_lissom].map(|s| Field::Median(Some(s)));
    let idle = percent(alone.rigid_idle.median).into();
    Some([mix.name().into()].into_iter().chain(times).chain([idle]).collect())
}

fn percent(part: f64) -> String {
    format!("{:.0}%", part * 100.0)
}

fn row<'a>(cell: &Cell) -> Vec<Field<'a>> {
    let name = cell.scenario.name().into();
    let Some(f) = &cell.result else {
        let state = match cell.state {
            State::Failed => "failed",
            State::Timeout => "timeout",
            State::Ok => "-",
        };
        return vec![name, state.into()];
    };
    let stock = f.to_stock.as_ref();
    let speed = |s: Spread| {
        let (median, least, most) = (1.0 / s.median, 1.0 / s.most, 1.0 / s.least);
        Field::Median(Some(Spread { median, least, most }))
    };
    vec![
        name,
        Field::Median(Some(f.rigid)),
        Field::Median(Some(f.malleable)),
        Field::Median(stock.map(|r| r.rigid)),
        Field::Median(stock.map(|r| r.malleable)),
        Field::Spread(stock.map(|r| r.stp)),
        speed(f.rigid_slowdown),
        speed(f.malleable_slowdown),
        Field::Median(Some(f.stp)),
    ]
}

fn summary<'a>(s: &Summary) -> Vec<Field<'a>> {
    let which = if s.idle_at_least == 0.0 {
        "all".into()
    } else {
        format!("N leaves {} or more", percent(IDLE))
    };
    let stock = s.to_stock.as_ref();
    let to_stock = stock.map(|m| [m.rigid, m.malleable, m.stp].map(number)).unwrap_or_default();
    let to_alone = [1.0 / s.rigid_slowdown, 1.0 / s.malleable_slowdown, s.stp].map(number);
    [s.scenario.name(), format!("{which} ({})", s.mixes)]
        .into_iter()
        .chain(to_stock)
        .chain(to_alone)
        .map(Field::from)
        .collect()
}

/// Format shares as `0: 12%`, without those below half a percent.
fn shares(profile: &Profile) -> String {
    let counts = profile.shares.iter().enumerate().filter(|(_, share)| **share >= 0.005);
    let texts: Vec<String> = counts.map(|(i, share)| format!("{i}: {}", percent(*share))).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::super::document::Document;
    use super::super::super::machine::Machine;
    use super::super::WaitPolicy;
    use super::super::report;
    use super::*;

    #[test]
    fn tables_fit() {
        let mixes = vec![report::tests::mix()];
        let spread = Spread::of(&[1.5, 12_345.0]).expect("numbers");
        let options = Options {
            cpus: 2,
            switch: "auto",
            malleable_threads: 8,
            rigid_threads: 2,
            wait_policy: WaitPolicy::Passive,
            runs: 1,
            completed: 3,
            timeout: 60.0,
            scale: 1.0,
        };
        let results = Mixes {
            summary: report::summaries(&mixes, &[Scenario::Stock, Scenario::Lissom]),
            mixes,
            profile: vec![Profile {
                program: "ep".into(),
                threads: 200,
                seconds: 1.0,
                shares: vec![0.01; 100],
            }],
            scaling: vec![Scaling {
                program: "ep".into(),
                points: vec![Point { threads: 64, seconds: spread, speedup: spread }],
            }],
        };
        let report = Document::of("mixes", Machine::look(), options, results);
        let text = report.text();
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        assert!(
            text.lines().any(|l| l.starts_with("blackscholes") && l.ends_with("50%")),
            "{text}"
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        let line = "lissom 1.25 2.50 1.60 1.60 1.60 1.60-1.60 0.80 0.80 1.60";
        assert!(words.join(" ").contains(line), "{text}");
        assert!(text.contains("20% (blackscholes"), "{text}");
        assert!(text.contains("with manager failed: lissom manager has ended"), "{text}");
        let markdown = report.markdown();
        assert!(markdown.contains("| blackscholes + ep | manager | failed |"), "{markdown}");
        assert_eq!(report.exit_code(), 1);
    }
}
