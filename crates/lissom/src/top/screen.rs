//! The screen: a table, and below it the chosen program.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Clear, Paragraph, Row, Table, TableState};

use super::view::View;
use os::place::Places;
use ui::text::plural;
use watch::places;
use watch::program::{Program, State};
use watch::text::{self, Column};

/// Height of the details below the table.
const DETAILS: u16 = 12;
/// Maximum number of loops and of locks in the details.
const PLACES: usize = 3;
/// Minimum height of a screen with details.
const ROOM: u16 = DETAILS + 8;

pub fn draw(frame: &mut Frame, view: &mut View, known: &mut Places) {
    let has_details = view.has_details && frame.area().height >= ROOM;
    let [head, table, details, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(if has_details { DETAILS } else { 0 }),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let width = usize::from(frame.area().width);
    view.page = usize::from(table.height).saturating_sub(1).max(1);
    view.columns = Column::fitting(width).into_iter().map(|(column, _)| column).collect();
    let rows = view.rows();
    let chosen = view.chosen(&rows);
    frame.render_widget(Paragraph::new(summary(view, &rows, width)), head);
    draw_table(frame, view, &rows, chosen, table);
    if has_details && let Some(program) = rows.get(chosen) {
        draw_details(frame, view, program, known, details);
    }
    frame.render_widget(Paragraph::new(keys(view, width)), foot);
    if view.has_help {
        draw_help(frame);
    }
}

fn summary(view: &View, rows: &[&Program], width: usize) -> Line<'static> {
    let rows: Vec<&&Program> = rows.iter().filter(|p| p.state != State::Ended).collect();
    let is_under = |p: &&&&Program| !matches!(p.state, State::Other | State::Hidden);
    let under: Vec<&&&Program> = rows.iter().filter(is_under).collect();
    let threads: u32 = under.iter().map(|p| p.threads).sum();
    let slots: u32 =
        under.iter().filter(|p| p.state == State::Active).filter_map(|p| p.slots).sum();
    // Not sum(): that of nothing is -0.
    let cpu = rows.iter().fold(0.0, |sum, p| sum + p.cpu_percent);
    let spin = rows.iter().filter_map(|p| p.spin_percent).fold(0.0, |sum, spin| sum + spin);
    let mut parts = vec![format!("lissom: {} managed", plural(under.len() as u64, "program"))];
    if view.is_paused {
        parts.push("PAUSED".into());
    }
    parts.push(format!("CPU {cpu:.0} of {} %", 100 * view.cpus));
    if view.no_sampling.is_none() {
        parts.push(format!("{spin:.0} % in loops that wait"));
    }
    parts.push(format!("{} on {}", plural(threads.into(), "thread"), plural(slots.into(), "slot")));
    Line::from(join_fitting(parts, "; ", width)).style(Style::new().add_modifier(Modifier::BOLD))
}

/// Join parts, up to the last one that fits in `width` columns.
fn join_fitting(parts: Vec<String>, separator: &str, width: usize) -> String {
    let mut text = String::new();
    for part in parts {
        let more = if text.is_empty() { part } else { format!("{separator}{part}") };
        if text.chars().count() + more.chars().count() > width {
            break;
        }
        text += &more;
    }
    text
}

fn draw_table(frame: &mut Frame, view: &View, rows: &[&Program], chosen: usize, area: Rect) {
    let align = |column: Column, text: String| {
        let line = Line::from(text);
        Cell::from(if column.is_left() { line } else { line.right_aligned() })
    };
    let columns = Column::fitting(area.width.into());
    let head = columns.iter().map(|&(c, _)| {
        let style =
            if c == view.sort() { Modifier::REVERSED | Modifier::BOLD } else { Modifier::BOLD };
        align(c, c.head().into()).style(Style::new().add_modifier(style))
    });
    let body = rows
        .iter()
        .map(|p| Row::new(columns.iter().map(|&(c, _)| align(c, c.cell(p)))).style(colour(p)));
    let widths = columns.iter().map(|&(_, width)| Constraint::Length(width as u16));
    let table = Table::new(body, widths)
        .header(Row::new(head))
        .column_spacing(1)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    let mut state = TableState::default().with_selected((!rows.is_empty()).then_some(chosen));
    frame.render_stateful_widget(table, area, &mut state);
    if rows.is_empty() {
        let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        frame.render_widget(Paragraph::new("no programs yet, or none matches the filter"), below);
    }
}

/// Return the colour of a row. It only repeats what the columns say.
fn colour(p: &Program) -> Style {
    match p.state {
        State::Stuck | State::Dead => Style::new().fg(Color::Red),
        State::Ended | State::Stopped => Style::new().fg(Color::DarkGray),
        _ if p.spin_percent.is_some_and(|s| s > 20.0) => Style::new().fg(Color::Yellow),
        State::Active => Style::new().fg(Color::Green),
        _ => Style::new(),
    }
}

fn draw_details(frame: &mut Frame, view: &View, program: &Program, known: &mut Places, area: Rect) {
    let mut lines = text::details(program, area.width.into());
    let is_there = program.state != State::Ended;
    if is_there {
        let sites = places::spin_sites(program, known, PLACES);
        lines.extend(text::places(&sites, &places::lock_profiles(program, known, PLACES)));
    }
    if let Some(why) = &view.no_sampling
        && program.spin_percent.is_none()
    {
        lines.push(format!("  SPIN% needs root privileges: {why}"));
    }
    let title = format!(" {} [{}] ", program.name, program.pid);
    let block = Block::new().borders(Borders::TOP).title(title);
    frame.render_widget(
        Paragraph::new(lines.into_iter().map(Line::from).collect::<Vec<_>>()).block(block),
        area,
    );
}

fn keys(view: &View, width: usize) -> Line<'static> {
    if view.is_typing {
        return Line::from(format!("name or PID: {}_   Enter: apply  Esc: show all", view.filter));
    }
    let mut spans: Vec<Span> = Vec::new();
    if !view.filter.is_empty() {
        spans.push(format!("filter: {}  ", view.filter).into());
    }
    let others = [
        ("q", "quit"),
        ("h", "help"),
        ("< >", "sort"),
        ("/", "filter"),
        ("a", "lissom only"),
        ("d", "details"),
        ("Space", "pause"),
    ];
    let all = (!view.filter.is_empty()).then_some(("Esc", "all"));
    for (key, action) in all.into_iter().chain(others) {
        let used: usize = spans.iter().map(Span::width).sum();
        if used + key.len() + 1 + action.len() > width {
            break;
        }
        spans.push(Span::styled(key, Style::new().add_modifier(Modifier::BOLD)));
        spans.push(format!(" {action}  ").into());
    }
    Line::from(spans)
}

const KEYS: &[&str] = &[
    "up down PgUp PgDn   select a program",
    "< > left right      sort by another column",
    "r                   reverse the order",
    "/                   filter by name or PID; Esc shows all",
    "a                   only programs under lissom",
    "Enter, d            hide or show loops and locks",
    "Space               pause or continue",
    "q, Esc, Ctrl-C      quit",
    "",
];

fn draw_help(frame: &mut Frame) {
    let area = frame.area();
    let lines: Vec<String> =
        KEYS.iter().map(|line| (*line).to_string()).chain(text::legend()).collect();
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0) as u16;
    let (width, height) =
        ((longest + 2).min(area.width), (lines.len() as u16 + 2).min(area.height));
    let middle = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, middle);
    let lines: Vec<Line> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(
        Paragraph::new(lines).block(Block::bordered().title(" keys, columns ")),
        middle,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::view::tests::three;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
        terminal.draw(|frame| draw(frame, view, &mut Places::default())).expect("memory");
        let buffer = terminal.backend().buffer().clone();
        let row = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        (0..height).map(|y| row(y).trim_end().to_string()).collect()
    }

    #[test]
    fn all_columns_at_80_by_24() {
        let mut view = three();
        let text = screen(&mut view, 80, 24);
        assert!(text[0].starts_with("lissom: 2 programs managed"), "{text:#?}");
        for column in Column::ALL.into_iter().filter(|c| *c != Column::Command) {
            assert!(text[1].contains(column.head()), "{} in {}", column.head(), text[1]);
        }
        assert!(text[2].contains("solver") && text[2].contains("active"), "{text:#?}");
        assert!(text.iter().any(|l| l.contains("solver [10]")), "{text:#?}");
        assert!(text[23].starts_with("q quit"), "{text:#?}");
    }

    /// Lines with text of the whole screen, at widths that drop columns, fit, and show the command
    /// line. LISSOM_TEST_UPDATE=1 writes the snapshots.
    #[test]
    fn snapshots() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stat/top");
        for width in [60, 80, 120, 200] {
            let lines = screen(&mut three(), width, 22);
            let text: String = lines
                .iter()
                .filter(|line| !line.is_empty())
                .map(|line| format!("{line}\n"))
                .collect();
            let file = format!("{folder}/{width}.txt");
            if std::env::var_os("LISSOM_TEST_UPDATE").is_some() {
                std::fs::write(&file, &text).expect("a writable source tree");
            }
            assert_eq!(text, std::fs::read_to_string(&file).expect("a snapshot"), "{file}");
        }
    }

    #[test]
    fn nothing_is_zero() {
        let text = screen(&mut View::new(None), 80, 24);
        assert!(text[0].contains("CPU 0 of ") && text[0].contains("; 0 % in loops"), "{}", text[0]);
    }

    #[test]
    fn small_screens_and_help() {
        let mut view = three();
        for (width, height) in [(80, 10), (40, 6), (10, 4), (200, 60)] {
            assert_eq!(screen(&mut view, width, height).len(), usize::from(height));
        }
        view.key(KeyEvent::new(KeyCode::Char('h'), KeyModifiers::NONE));
        assert!(screen(&mut view, 80, 24).iter().any(|l| l.contains("sort by another column")));
        screen(&mut view, 20, 5);
    }
}
