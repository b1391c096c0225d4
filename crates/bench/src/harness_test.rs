use super::*;

const TIME: Metric = Metric { field: "seconds", unit: "s", compare: Compare::Ratio };

fn group(names: &[&'static str]) -> Group {
    let scenario = |&name| Scenario {
        name,
        switch: None,
        around: vec![],
        command: vec![name.into()],
        effort: None,
    };
    Group {
        workload: "w".into(),
        threads: 8,
        scenarios: names.iter().map(scenario).collect(),
        ..Group::of(TIME)
    }
}

fn done(value: f64) -> Ran {
    let sample = Sample {
        value,
        output: serde_json::json!({ "error": value }),
        process: Process::default(),
    };
    Ran::of(Outcome::Done(sample))
}

#[test]
fn medians() {
    assert_eq!(Spread::of(&[]), None);
    assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
    assert_eq!(Spread::of(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
    let even = Spread::of(&[4.0, 1.0, 2.0, 3.0]).expect("numbers");
    assert_eq!(even.median, 2.5);
    assert_eq!(even.relative(), 3.0 / 2.5);
    assert_eq!(Spread { median: 0.0, least: 0.0, most: 1.0 }.relative(), 0.0);
}

#[test]
fn pairs_take_the_drift_out() {
    // The machine becomes half as fast; the ratio stays.
    let ratio = pairwise(&[2.0, 3.0, 4.0], &[1.0, 1.5, 2.0], Compare::Ratio);
    assert_eq!(ratio, Some(Spread { median: 2.0, least: 2.0, most: 2.0 }));
    let difference = pairwise(&[5.0, 7.0], &[4.0, 4.0], Compare::Difference);
    assert_eq!(difference, Some(Spread { median: 2.0, least: 1.0, most: 3.0 }));
    assert_eq!(pairwise(&[1.0], &[1.0], Compare::Nothing), None);
    assert_eq!(pairwise(&[1.0], &[0.0], Compare::Ratio), None);
    assert_eq!(pairwise(&[1.0], &[], Compare::Ratio), None);
}

#[test]
fn rounds_are_interleaved_and_the_warm_up_does_not_count() {
    let mut order = Vec::new();
    let measured = measure(&group(&[BOUND, NATIVE, "user"]), 2, |scenario, turn, _| {
        order.push((scenario.name, turn));
        let base = if turn == Turn::WarmUp { 100.0 } else { 1.0 };
        Ok::<_, ()>(done(base * if scenario.name == NATIVE { 4.0 } else { 1.0 }))
    })
    .expect("no error");
    let turns = [Turn::WarmUp, Turn::Round(1), Turn::Round(2)];
    let expected: Vec<_> =
        turns.into_iter().flat_map(|t| [(BOUND, t), (NATIVE, t), ("user", t)]).collect();
    assert_eq!(order, expected);
    assert_eq!(measured.cells[1].values(), [4.0, 4.0]);
    assert_eq!(measured.cells[0].to_bound, None);
    assert_eq!(measured.cells[1].to_bound.expect("a ratio").median, 4.0);
    assert_eq!(measured.cells[1].to_native, None);
    assert_eq!(measured.cells[2].to_native.expect("a ratio").median, 0.25);
}

#[test]
fn a_program_that_is_killed_took_at_least_the_limit() {
    let ran = |scenario: &Scenario| {
        if scenario.name == NATIVE {
            Ran { outcome: Outcome::Timeout, ..done(0.0) }
        } else {
            done(2.5)
        }
    };
    let slow = Group { limit: Some(20.0), ..group(&[BOUND, NATIVE]) };
    let measured = measure(&slow, 2, |s, _, _| Ok::<_, ()>(ran(s))).expect("no error");
    let native = &measured.cells[1];
    assert_eq!((native.state, native.at_least), (State::Timeout, Some(20.0)));
    assert_eq!(native.to_bound.expect("a bound").median, 8.0);
    let unknown = measure(&group(&[BOUND, NATIVE]), 2, |s, _, _| Ok::<_, ()>(ran(s)));
    assert_eq!(unknown.expect("no error").cells[1].at_least, None);
}

#[test]
fn a_scenario_that_fails_is_not_tried_again_and_the_others_go_on() {
    let mut slow = 0;
    let measured = measure(&group(&[BOUND, NATIVE, "user"]), 3, |scenario, turn, _| {
        let failed = Ran::of;
        Ok::<_, ()>(match (scenario.name, turn) {
            (NATIVE, _) => {
                slow += 1;
                failed(Outcome::Timeout)
            }
            ("user", Turn::Round(2)) => failed(Outcome::Failed("crashed".into())),
            _ => done(1.0),
        })
    })
    .expect("no error");
    assert_eq!(slow, 1);
    let states: Vec<State> = measured.cells.iter().map(|c| c.state).collect();
    assert_eq!(states, [State::Ok, State::Timeout, State::Failed]);
    assert_eq!(measured.cells[2].samples.len(), 1);
    assert!(measured.cells[2].value.is_none() && measured.cells[2].to_bound.is_none());
    assert_eq!(measured.cells[0].value.expect("a value").median, 1.0);
}

#[test]
fn an_interruption_ends_it() {
    let mut runs = 0;
    let measured = measure(&group(&[BOUND, NATIVE]), 3, |_, _, _| {
        runs += 1;
        if runs == 3 { Err("interrupted") } else { Ok(done(1.0)) }
    });
    assert_eq!(measured.err(), Some("interrupted"));
    assert_eq!(runs, 3);
}

#[test]
fn another_result_is_a_failure() {
    let mut group = group(&[BOUND, NATIVE, "user"]);
    group.same = Some(("error", 0.05));
    let value = |name| match name {
        BOUND => 1.0,
        NATIVE => 1.04,
        _ => 1.06,
    };
    let measured =
        measure(&group, 1, |s, _, _| Ok::<_, ()>(done(value(s.name)))).expect("no error");
    let states: Vec<State> = measured.cells.iter().map(|c| c.state).collect();
    assert_eq!(states, [State::Ok, State::Ok, State::Failed]);
}

/// Measure scenarios with `seconds` per round and a limit of 20 s. Also returns the order of runs.
fn with_rounds(seconds: impl Fn(&str, Turn) -> f64) -> (Measured, Vec<(&'static str, Turn, u64)>) {
    let mut group = group(&[BOUND, NATIVE, "user"]);
    for scenario in &mut group.scenarios {
        scenario.effort = Some(Effort { rounds: 1_000_000, units: 8.0, limit: 20.0, aim: 2.0 });
    }
    let mut order = Vec::new();
    let measured = measure(&group, 2, |scenario, turn, rounds| {
        let rounds = rounds.expect("an effort");
        order.push((scenario.name, turn, rounds));
        let seconds = seconds(scenario.name, turn) * rounds as f64;
        let output = serde_json::json!({ "seconds": seconds });
        let sample = Sample {
            value: seconds * 1e6 / (rounds as f64 * 8.0),
            output,
            process: Process::default(),
        };
        let outcome = if seconds > 20.0 { Outcome::Timeout } else { Outcome::Done(sample) };
        Ok::<_, ()>(Ran::of(outcome))
    });
    (measured.expect("no error"), order)
}

#[test]
fn rounds_are_as_many_as_fit() {
    let (measured, order) = with_rounds(|name, _| if name == NATIVE { 0.05 } else { 1e-6 });
    let pilots = |name| {
        let pilots = order.iter().filter(|o| o.0 == name && o.1 == Turn::Pilot);
        pilots.map(|o| o.2).collect::<Vec<_>>()
    };
    assert_eq!(pilots(BOUND), [1, 100, 10_000]);
    assert_eq!(pilots(NATIVE), [1]);
    assert!(order.contains(&(BOUND, Turn::Round(1), 1_000_000)));
    assert!(order.contains(&(NATIVE, Turn::Round(1), 40)));
    assert!(measured.cells.iter().all(|c| c.state == State::Ok && c.at_least.is_none()));
    assert_eq!(measured.cells[1].value.expect("a value").median.round(), 6250.0);
}

#[test]
fn what_is_not_done_within_the_limit_is_said() {
    let (measured, order) = with_rounds(|name, _| if name == NATIVE { 30.0 } else { 1e-3 });
    assert_eq!(order.iter().filter(|o| o.0 == NATIVE).count(), 1);
    let native = &measured.cells[1];
    assert_eq!((native.state, native.at_least), (State::Timeout, Some(2.5e6)));
    assert_eq!(native.value.expect("a bound").median, 2.5e6);
    assert_eq!(native.to_bound.expect("a bound").median.round(), 20_000.0);
    assert!(measured.cells[2].to_native.expect("a bound").median < 1e-4);

    // The second round is slower and exceeds the limit: both rounds count.
    let (measured, _) = with_rounds(|name, turn| match turn {
        Turn::Round(2) if name == NATIVE => 1.0,
        _ => 0.05,
    });
    let native = &measured.cells[1];
    assert_eq!((native.samples.len(), native.rounds), (1, Some(40)));
    assert_eq!(native.value.expect("a value").most, 62_500.0);
}

#[test]
fn a_scenario_may_be_left_out_by_those_before_it() {
    let leave_out = |name: &str, before: &[Cell]| {
        name == "user" && before.iter().any(|cell| cell.samples.is_empty())
    };
    let group = Group { leave_out: Some(leave_out), ..group(&[NATIVE, "user", "auto"]) };
    let mut runs = 0;
    let measured = measure(&group, 2, |_, _, _| {
        runs += 1;
        Ok::<_, ()>(done(1.0))
    });
    let names: Vec<_> = measured.expect("no error").cells.iter().map(|c| c.scenario).collect();
    assert_eq!((names, runs), (vec![NATIVE, "auto"], 6));
}
