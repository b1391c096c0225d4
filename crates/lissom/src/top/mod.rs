//! `lissom top`: show what programs do, live.

mod screen;
mod view;

use std::io::IsTerminal as _;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::Args;
use ratatui::crossterm::event::{self, Event};
use signal_hook::consts::SIGHUP;
use ui::time::Unit;

use os::place::Places;
use os::stop::Stop;
use view::{Asked, View};
use watch::look::{Look, Watch, Which};
use watch::program::Past;

/// Show live where programs wait, spin and lose CPU time
///
/// Shows the table of `lissom stat --all`, and below it the loops and locks of the selected
/// program. `lissom stat --help` explains the columns.
#[derive(Args)]
#[command(after_long_help = "\
Keys:
  up, down, k, j, PgUp, PgDn, Home, End   select a program
  left, right, <, >                       sort by another column
  r                                       reverse the order
  /                                       filter by name or PID; Esc shows all
  a                                       only programs under lissom, or all
  Enter, d                                hide or show loops and locks
  Space                                   pause or continue
  h, ?                                    help
  q, Esc, Ctrl-C                          quit

Exit code: 0, or 1 if standard input or output is not a terminal.

Examples:
  lissom top
  lissom top --interval 5s $(pidof solver)")]
pub struct TopArgs {
    /// Time between two samples. Each sample costs about 20 us for each thread that runs
    #[arg(long, value_name = "TIME", default_value = "1s",
          value_parser = ui::time::parser(Unit::S, "100ms", "24h"))]
    interval: Duration,

    /// Show only the programs with these process IDs
    #[arg(value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pids: Vec<u32>,
}

/// Run the verb. Returns the exit code.
pub fn top(args: &TopArgs) -> anyhow::Result<i32> {
    show(args).map(|()| 0)
}

fn show(args: &TopArgs) -> anyhow::Result<()> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        bail!("standard input and output must be a terminal; use `lissom stat --all` instead");
    }
    let which = if args.pids.is_empty() { Which::All } else { Which::These(args.pids.clone()) };
    let mut watch = Watch::new(which);
    let first = watch.look()?;
    let stop = Stop::on_signals()?;
    // End at once on SIGHUP: no terminal is left to restore, and crossterm would read its end for
    // ever.
    signal_hook::flag::register_conditional_default(SIGHUP, Arc::new(AtomicBool::new(true)))?;
    // This restores the terminal after a panic, too.
    let mut terminal = ratatui::try_init().context("cannot set up the terminal")?;
    let ended = run(&mut terminal, args, &stop, &mut watch, first);
    ratatui::restore();
    ended
}

fn run(
    terminal: &mut ratatui::DefaultTerminal,
    args: &TopArgs,
    stop: &Stop,
    watch: &mut Watch,
    mut before: Look,
) -> anyhow::Result<()> {
    let mut view = View::new(watch.no_sampling());
    let (mut past, mut places) = (Past::default(), Places::default());
    let mut next = Instant::now() + args.interval.min(Duration::from_millis(500));
    while !stop.asked() {
        terminal.draw(|frame| screen::draw(frame, &mut view, &mut places))?;
        // A change of the terminal's size arrives as a signal, and is noticed at the next turn.
        let turn = Instant::now() + Duration::from_millis(200);
        stop.wait_or_readable(next.min(turn), Some(std::io::stdin().as_fd()));
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()?
                && view.key(key) == Asked::End
            {
                return Ok(());
            }
        }
        if Instant::now() >= next {
            let now = watch.look()?;
            places.keep(|pid| now.programs.contains_key(&pid));
            if !view.is_paused {
                view.programs_are(past.programs(&before, &now));
            }
            before = now;
            next = Instant::now() + args.interval;
        }
    }
    Ok(())
}
