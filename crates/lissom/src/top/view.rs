//! State of `lissom top`: programs, order, filter and choice. Pure, except for the clock.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

use watch::program::is_worth_a_line;
use watch::program::{Program, State};
use watch::text::Column;

/// Time for which an ended program remains visible.
const REMEMBERED: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    GoOn,
    End,
}

pub struct View {
    programs: Vec<Program>,
    ended: Vec<(Instant, Program)>,
    sort: Column,
    is_reversed: bool,
    pub filter: String,
    /// Letters go into the filter.
    pub is_typing: bool,
    only_lissom: bool,
    pub has_details: bool,
    pub is_paused: bool,
    pub has_help: bool,
    /// Process number and start time of the chosen program, in whatever row it is.
    chosen: Option<(u32, u64)>,
    /// Rows of the table that fit on the screen, set by screen.rs.
    pub page: usize,
    /// Columns that fit on the screen, set by screen.rs.
    pub columns: Vec<Column>,
    pub no_sampling: Option<String>,
    /// Online CPUs.
    pub cpus: usize,
}

impl View {
    pub fn new(no_sampling: Option<String>) -> View {
        View {
            programs: Vec::new(),
            ended: Vec::new(),
            sort: Column::Cpu,
            is_reversed: false,
            filter: String::new(),
            is_typing: false,
            only_lissom: false,
            has_details: true,
            is_paused: false,
            has_help: false,
            chosen: None,
            page: 10,
            columns: Column::ALL.into(),
            no_sampling,
            cpus: os::process::online_count(),
        }
    }

    pub fn programs_are(&mut self, programs: Vec<Program>) {
        let now = Instant::now();
        self.ended.retain(|(when, _)| now - *when < REMEMBERED);
        let (ended, alive) = programs.into_iter().partition(|p: &Program| p.state == State::Ended);
        // Forget ended programs that were outside lissom: shells and the like end by the hundred.
        let were_under_lissom = |p: &Program| p.slots.is_some();
        self.ended.extend(Vec::into_iter(ended).filter(were_under_lissom).map(|p| (now, p)));
        self.programs = alive;
    }

    /// Return the visible programs in the order of the screen.
    pub fn rows(&self) -> Vec<&Program> {
        let wanted = |p: &&Program| {
            let matches = p.name.contains(&self.filter) || p.pid.to_string().contains(&self.filter);
            let is_shown = if self.only_lissom {
                !matches!(p.state, State::Other | State::Hidden)
            } else {
                !self.filter.is_empty() || is_worth_a_line(p)
            };
            matches && (is_shown || p.state == State::Ended)
        };
        let all = self.programs.iter().chain(self.ended.iter().map(|(_, p)| p));
        let mut rows: Vec<&Program> = all.filter(wanted).collect();
        rows.sort_by(|a, b| {
            let order = self.sort.compare(a, b);
            if self.is_reversed { order.reverse() } else { order }
        });
        rows
    }

    pub fn sort(&self) -> Column {
        self.sort
    }

    /// Return the row of the chosen program, or 0 if there is none.
    pub fn chosen(&self, rows: &[&Program]) -> usize {
        let is_it = |p: &&&Program| Some((p.pid, p.start_time)) == self.chosen;
        rows.iter().position(|p| is_it(&p)).unwrap_or(0)
    }

    pub fn key(&mut self, key: KeyEvent) -> Asked {
        if key.kind == KeyEventKind::Release {
            return Asked::GoOn;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Asked::End;
        }
        if self.is_typing {
            self.type_letter(key.code);
            return Asked::GoOn;
        }
        if self.has_help {
            self.has_help = false;
            return if key.code == KeyCode::Char('q') { Asked::End } else { Asked::GoOn };
        }
        match key.code {
            KeyCode::Char('q') => return Asked::End,
            KeyCode::Esc if self.filter.is_empty() => return Asked::End,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Char('/') => {
                self.is_typing = true;
                self.filter.clear();
            }
            KeyCode::Up | KeyCode::Char('k') => self.choose(-1),
            KeyCode::Down | KeyCode::Char('j') => self.choose(1),
            KeyCode::PageUp => self.choose(-(self.page as isize)),
            KeyCode::PageDown => self.choose(self.page as isize),
            KeyCode::Home => self.choose(isize::MIN / 2),
            KeyCode::End => self.choose(isize::MAX / 2),
            KeyCode::Left | KeyCode::Char('<') => self.sort_by(-1),
            KeyCode::Right | KeyCode::Char('>') => self.sort_by(1),
            KeyCode::Char('r') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('a') => self.only_lissom = !self.only_lissom,
            KeyCode::Enter | KeyCode::Char('d') => self.has_details = !self.has_details,
            KeyCode::Char(' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('h' | '?') => self.has_help = true,
            _ => {}
        }
        Asked::GoOn
    }

    fn type_letter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
    }

    fn choose(&mut self, by: isize) {
        let rows = self.rows();
        let now = self.chosen(&rows);
        let next = now.saturating_add_signed(by).min(rows.len().saturating_sub(1));
        self.chosen = rows.get(next).map(|p| (p.pid, p.start_time));
    }

    fn sort_by(&mut self, by: isize) {
        let n = self.columns.len() as isize;
        let now = self.columns.iter().position(|c| *c == self.sort).unwrap_or(0) as isize;
        self.sort = self.columns[(now + by).rem_euclid(n) as usize];
        self.is_reversed = false;
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Create a program of 4 threads.
    fn made_up(pid: u32, name: &str, state: State, cpu_percent: f64) -> Program {
        let is_under = state != State::Other;
        Program {
            pid,
            name: name.into(),
            command: format!("/opt/{name} --steps=1000 input.txt"),
            state,
            cpu_percent,
            machine_percent: cpu_percent / 2.0,
            spin_percent: Some(cpu_percent / 10.0),
            spin_error_percent: Some(cpu_percent / 50.0),
            work_percent: Some(cpu_percent * 0.7),
            undecided_percent: Some(0.0),
            kernel_percent: cpu_percent * 0.2,
            threads: 4,
            slots: is_under.then_some(2),
            limit: is_under.then_some(2),
            ready: is_under.then_some(1),
            ..Program::default()
        }
    }

    fn press(view: &mut View, codes: &[KeyCode]) -> Asked {
        codes
            .iter()
            .map(|&code| view.key(KeyEvent::new(code, KeyModifiers::NONE)))
            .last()
            .unwrap_or(Asked::GoOn)
    }

    pub fn three() -> View {
        let mut view = View::new(None);
        view.cpus = 2;
        view.programs_are(vec![
            made_up(10, "solver", State::Active, 150.0),
            made_up(11, "shell", State::Other, 0.0),
            made_up(12, "hog", State::Other, 40.0),
            made_up(9, "train", State::Idle, 0.0),
        ]);
        view
    }

    fn pids(view: &View) -> Vec<u32> {
        view.rows().iter().map(|p| p.pid).collect()
    }

    #[test]
    fn sorted_and_filtered() {
        let mut view = three();
        // An idle program outside lissom has no row.
        assert_eq!(pids(&view), [10, 12, 9]);
        press(&mut view, &[KeyCode::Char('r')]);
        assert_eq!(pids(&view), [9, 12, 10]);
        // By SPIN%.
        press(&mut view, &[KeyCode::Right, KeyCode::Home, KeyCode::Char('a')]);
        assert_eq!(pids(&view), [10, 9]);
        press(
            &mut view,
            &[
                KeyCode::Char('a'),
                KeyCode::Char('/'),
                KeyCode::Char('s'),
                KeyCode::Char('h'),
                KeyCode::Enter,
            ],
        );
        assert_eq!(pids(&view), [11]);
        assert_eq!(press(&mut view, &[KeyCode::Esc]), Asked::GoOn);
        assert_eq!(press(&mut view, &[KeyCode::Esc]), Asked::End);
        // While a filter is typed, q is a letter.
        assert_eq!(press(&mut view, &[KeyCode::Char('/'), KeyCode::Char('q')]), Asked::GoOn);
        assert_eq!(view.filter, "q");
    }

    #[test]
    fn the_chosen_program_stays_chosen() {
        let mut view = three();
        press(&mut view, &[KeyCode::Down]);
        assert_eq!(view.chosen(&view.rows()), 1);
        press(&mut view, &[KeyCode::Char('r'), KeyCode::Right, KeyCode::Left]);
        let rows = view.rows();
        assert_eq!(rows[view.chosen(&rows)].pid, 12);
        drop(rows);
        press(&mut view, &[KeyCode::End, KeyCode::End]);
        assert_eq!(view.chosen(&view.rows()), 2);
        press(&mut view, &[KeyCode::Home, KeyCode::Up]);
        assert_eq!(view.chosen(&view.rows()), 0);
        // The chosen program ends: the first row is chosen.
        view.programs_are(vec![made_up(12, "hog", State::Other, 40.0)]);
        assert_eq!((pids(&view), view.chosen(&view.rows())), (vec![12], 0));
    }

    #[test]
    fn who_has_ended_is_shown_as_such() {
        let mut view = three();
        view.programs_are(vec![
            made_up(10, "solver", State::Ended, 0.0),
            Program { slots: None, ..made_up(12, "hog", State::Ended, 0.0) },
        ]);
        let rows = view.rows();
        assert_eq!((rows.len(), rows[0].pid, rows[0].state), (1, 10, State::Ended));
    }
}
