//! The advice of `lissom bench -- CMD`: the way to run CMD.

use std::collections::BTreeMap;

use serde::Serialize;

use super::child::Printed;
use super::harness::{Cell, Measured, NATIVE, Spread, State};
use super::table::number;
use super::ways::Way;

/// How the output of a way compares with the native one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Output {
    /// The same bytes in all runs.
    Same,
    Differs,
    /// The native runs differ from each other, so nothing can be compared.
    Varies,
    /// No run prints anything.
    Empty,
}

#[derive(Serialize)]
pub struct Advice {
    /// The fastest way whose rounds all beat native and whose output is not wrong, or `native`. A
    /// way with a danger also has to beat those without one in every round.
    pub way: &'static str,
    /// The command line of this way.
    pub command: Vec<String>,
    /// Time in relation to the native time, round by round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Spread>,
    /// The outputs of all ways that ran to their end.
    pub outputs: BTreeMap<&'static str, Output>,
    /// Text: remarks on outputs and dangers, and in the end one sentence with the command.
    pub lines: Vec<String>,
}

/// Compare the outputs of a way with the native ones.
fn compare(native: &[Printed], way: &[Printed]) -> Output {
    let Some(first) = native.first() else { return Output::Varies };
    if native.iter().any(|p| p != first) {
        Output::Varies
    } else if way.iter().any(|p| p != first) {
        Output::Differs
    } else if first.bytes == 0 {
        Output::Empty
    } else {
        Output::Same
    }
}

/// Return the advice for a program. None: a native run failed or was too slow. `command`: the
/// program's own.
pub fn advise(group: &Measured, command: &[String]) -> Option<Advice> {
    let native = group.cell(NATIVE).filter(|cell| cell.state == State::Ok)?;
    // The way `off` is native, too.
    let way = |cell: &Cell| Way::of(cell.scenario).filter(|way| way.options().is_some());
    let ways: Vec<(Way, &Cell, Output)> = group
        .cells
        .iter()
        .filter(|cell| cell.state == State::Ok)
        .filter_map(|cell| Some((way(cell)?, cell, compare(&native.printed, &cell.printed))))
        .collect();
    let names = |with: Output| {
        let cells = ways.iter().filter(|(_, _, output)| *output == with);
        cells.map(|(_, cell, _)| cell.scenario).collect::<Vec<_>>().join(", ")
    };
    let mut lines = Vec::new();
    let differs = names(Output::Differs);
    if !differs.is_empty() {
        lines.push(format!("{differs}: the output differs from the native one: check it."));
    }
    let beats =
        |cell: &Cell| cell.to_native.filter(|r| r.most < 1.0 && cell.native_because.is_none());
    let mut faster: Vec<(Way, &Cell, Output, Spread)> = ways
        .iter()
        .filter_map(|&(way, cell, output)| Some((way, cell, output, beats(cell)?)))
        .collect();
    faster.sort_by(|a, b| a.3.median.total_cmp(&b.3.median));
    // Without a comparison, a way that may compute wrong results is no advice.
    let is_right = |way: Way, output| match output {
        Output::Same => true,
        Output::Differs => false,
        Output::Varies | Output::Empty => way.danger().is_none(),
    };
    let outputs = ways.iter().map(|(_, cell, output)| (cell.scenario, *output)).collect();
    let right = || faster.iter().filter(|(way, _, output, _)| is_right(*way, *output));
    // A dangerous way has to beat a harmless one in every round.
    let harmless = right().find(|(way, ..)| way.danger().is_none());
    let beats_harmless =
        |ratio: Spread| harmless.is_none_or(|(_, _, _, other)| ratio.most < other.least);
    let chosen =
        right().find(|(way, _, _, ratio)| way.danger().is_none() || beats_harmless(*ratio));
    let Some((way, cell, output, ratio)) = chosen else {
        let why = match faster.first() {
            None if ways.iter().all(|(_, cell, _)| cell.native_because.is_some()) => {
                "lissom leaves it native".to_string()
            }
            None => "no other way was faster in every round".into(),
            Some((_, cell, Output::Differs, _)) => {
                format!("{} was faster, but its output differs", cell.scenario)
            }
            Some((_, cell, ..)) => {
                format!("{} was faster, but there is no output to compare", cell.scenario)
            }
        };
        lines.push(format!("Run it natively: {} ({why})", quoted(command)));
        return Some(Advice {
            way: NATIVE,
            command: command.to_vec(),
            ratio: None,
            outputs,
            lines,
        });
    };
    if *output == Output::Varies {
        let why = "The native runs print different outputs, so outputs cannot be compared: check \
                   the results.";
        lines.push(why.into());
    }
    lines.extend(way.danger().map(|danger| {
        format!("DANGER: {danger}. These runs printed the native output, but check other inputs.")
    }));
    let words = ["lissom", "run"].iter().chain(way.options().unwrap_or_default()).chain(&["--"]);
    let before: Vec<String> = words.map(|word| word.to_string()).collect();
    lines.push(format!(
        "Run it so: {} {} ({} times the native time, {}-{})",
        before.join(" "),
        quoted(command),
        number(ratio.median),
        number(ratio.least),
        number(ratio.most)
    ));
    let command = [&before, command].concat();
    Some(Advice { way: cell.scenario, command, ratio: Some(*ratio), outputs, lines })
}

/// Quote a command for a shell.
fn quoted(command: &[String]) -> String {
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    shlex::try_join(words).unwrap_or_else(|_| command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::harness::SECONDS;
    use super::*;

    fn cell(scenario: &'static str, ratios: [f64; 3], output: &str) -> Cell {
        Cell {
            scenario,
            managed: scenario != NATIVE,
            to_native: (scenario != NATIVE).then(|| Spread::of(&ratios)).flatten(),
            printed: vec![Printed::of(output.as_bytes()); 4],
            ..Cell::default()
        }
    }

    fn advice(cells: Vec<Cell>) -> Option<Advice> {
        let group = Measured {
            workload: "app".into(),
            threads: 0,
            metric: SECONDS,
            options: &[],
            environment: &[],
            cells,
        };
        advise(&group, &["app".into(), "a b".into()])
    }

    fn native(output: &str) -> Cell {
        cell(NATIVE, [1.0; 3], output)
    }

    fn last(advice: &Advice) -> &str {
        advice.lines.last().map_or("", String::as_str)
    }

    #[test]
    fn the_fastest_way_with_the_same_output() {
        let auto = || cell("auto", [0.5, 0.6, 0.7], "1");
        let team = |output| cell("omp-team", [0.2, 0.3, 0.4], output);
        // It is hardly faster than a way without a danger.
        let equal = cell("omp-team", [0.3, 0.5, 0.7], "1");
        assert_eq!(advice(vec![native("1"), auto(), equal]).map(|a| a.way), Some("auto"));
        let found = advice(vec![native("1"), auto(), team("1")]).expect("an advice");
        assert_eq!(found.way, "omp-team");
        assert_eq!(
            last(&found),
            "Run it so: lissom run --omp-team=slots -- app 'a b' (0.30 times the native time, \
             0.20-0.40)"
        );
        assert!(found.lines[0].starts_with("DANGER: ") && found.outputs["auto"] == Output::Same);
        let found = advice(vec![native("1"), auto(), team("2")]).expect("an advice");
        assert!(found.way == "auto" && found.command[2] == "--", "{}", last(&found));
        assert_eq!(found.lines[0], "omp-team: the output differs from the native one: check it.");
        assert!(!found.lines.iter().any(|line| line.contains("DANGER")));
        // Nothing to compare.
        let found = advice(vec![native(""), team("")]).expect("an advice");
        assert!(found.way == NATIVE && last(&found).contains("no output to compare"));
        let mut varies = native("1");
        varies.printed[2] = Printed::of(b"2");
        let found = advice(vec![varies, auto(), team("1")]).expect("an advice");
        assert!(found.way == "auto" && found.lines[0].contains("cannot be compared"));
    }

    #[test]
    fn natively() {
        let found = advice(vec![native("1"), cell("auto", [0.5, 0.6, 1.1], "1")]).expect("advice");
        let text = "Run it natively: app 'a b' (no other way was faster in every round)";
        assert!(found.way == NATIVE && last(&found) == text && found.ratio.is_none());
        let off = advice(vec![native("1"), cell("off", [0.5; 3], "1")]).expect("an advice");
        assert_eq!(off.way, NATIVE);
        let mut left = cell("auto", [0.5; 3], "1");
        left.native_because = Some("static".into());
        let left = advice(vec![native("1"), left]).expect("an advice");
        assert!(last(&left).contains("lissom leaves it native"));
        let mut failed = native("1");
        failed.state = State::Failed;
        assert!(advice(vec![failed, cell("auto", [0.5; 3], "1")]).is_none());
    }
}
