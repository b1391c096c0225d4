//! The wait-for graph as a picture: waiting threads on the left, then locks, then the threads that
//! hold the locks or end the waits.

use std::fmt::Write as _;

use super::graph::{Drawn, Sum, time, times};

/// In pixels.
const BOX: (usize, usize) = (250, 26);
const ROW: usize = 40;
const COLUMN: usize = 500;
const TOP: usize = 84;

/// Characters that fit into a box.
const FITS: usize = 36;

/// A column of boxes, each with a name of its own.
#[derive(Default)]
struct Column(Vec<String>);

impl Column {
    /// Return the row of a name, which is added if it is new.
    fn row(&mut self, name: &str) -> usize {
        self.0.iter().position(|n| n == name).unwrap_or_else(|| {
            self.0.push(name.to_string());
            self.0.len() - 1
        })
    }
}

struct Line {
    from: (usize, usize),
    to: (usize, usize),
    class: &'static str,
    label: String,
    /// Share of the longest total, from 0 to 1.
    weight: f64,
}

/// A line's column on the left, the rows of both ends, and its relation.
type Ends = (usize, usize, usize, &'static str);

/// Draw the graph.
pub fn draw(drawn: &Drawn) -> String {
    let (mut columns, mut lines) = (<[Column; 3]>::default(), Vec::<Line>::new());
    // One line for each pair of boxes.
    let mut sums: Vec<(Ends, Sum)> = Vec::new();
    for edge in &drawn.edges {
        let (waiter, object) = (columns[0].row(&edge.waiter), columns[1].row(&edge.object));
        let mut add = |ends: Ends| match sums.iter_mut().find(|(known, _)| *known == ends) {
            Some((_, sum)) => sum.add(&edge.sum),
            None => sums.push((ends, edge.sum)),
        };
        add((0, waiter, object, "waits"));
        if let Some(other) = &edge.other {
            let class = if edge.is_held { "held by" } else { "woken by" };
            add((1, object, columns[2].row(other), class));
        }
    }
    let most = sums.iter().map(|(_, sum)| sum.total as f64 / 1e9);
    let most = most.chain(drawn.spins.iter().map(|spin| spin.2)).fold(1e-9, f64::max);
    lines.extend(sums.iter().map(|((column, from, to, class), sum)| {
        let label = if *column == 0 { String::new() } else { format!("{class}: ") };
        Line {
            from: (*column, *from),
            to: (*column + 1, *to),
            class: class.split(' ').next().unwrap_or_default(),
            label: label + &times(sum),
            weight: sum.total as f64 / 1e9 / most,
        }
    }));
    for (thread, place, seconds) in &drawn.spins {
        let from = (0, columns[0].row(thread));
        let to = (1, columns[1].row(&format!("loop {place}")));
        let label = format!("spins, about {}", time((*seconds * 1e9) as u64));
        lines.push(Line { from, to, class: "spins", label, weight: seconds / most });
    }
    let rows = columns.iter().map(|c| c.0.len()).max().unwrap_or(0);
    let notes: Vec<String> = drawn
        .deadlocks
        .iter()
        .map(|text| format!("deadlock: {text}"))
        .chain(drawn.notes.iter().map(|text| format!("not shown: {text}")))
        .collect();
    let (width, below) = (2 * COLUMN + BOX.0 + 40, TOP + rows * ROW + 20);
    let height = below + notes.len() * 20;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(&mut svg, 20, 28, "title", &drawn.title);
    for (i, head) in ["waiting thread", "lock, futex or loop", "holder or waker"].iter().enumerate()
    {
        text(&mut svg, 20 + i * COLUMN, 62, "head", head);
    }
    for line in &lines {
        let fans_out = lines.iter().filter(|other| other.from == line.from).count() > 1;
        let fans_in = lines.iter().filter(|other| other.to == line.to).count() > 1;
        edge(&mut svg, line, fans_out, fans_in);
    }
    for (i, column) in columns.iter().enumerate() {
        for (row, name) in column.0.iter().enumerate() {
            node(&mut svg, i, row, name);
        }
    }
    for (i, note) in notes.iter().enumerate() {
        text(&mut svg, 20, below + 14 + i * 20, "note", note);
    }
    svg + "</svg>\n"
}

const STYLE: &str = "text{font:12px sans-serif;fill:#222}.title{font-size:16px}.head{fill:#666}\
                     .note{fill:#a00}.box{fill:#eef3fa;stroke:#446}path{fill:none}\
                     .waits{stroke:#c60}.held{stroke:#c00}.woken{stroke:#36c;\
                     stroke-dasharray:5 3}.spins{stroke:#909}.label{font-size:10px;\
                     paint-order:stroke;stroke:#fff;\
                     stroke-width:2px}.end{text-anchor:end}.middle{text-anchor:middle}";

fn node(svg: &mut String, column: usize, row: usize, name: &str) {
    let (x, y) = (20 + column * COLUMN, TOP + row * ROW);
    let shown: String = match name.chars().count() > FITS {
        true => name.chars().take(FITS - 1).chain(['…']).collect(),
        false => name.to_string(),
    };
    let _ = writeln!(
        svg,
        "<g><title>{}</title><rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" \
         rx=\"4\"/>",
        escaped(name),
        BOX.0,
        BOX.1
    );
    text(svg, x + 8, y + 17, "name", &shown);
    svg.push_str("</g>\n");
}

/// Draw a line. Its label is at the end that has no other lines, or in the middle.
fn edge(svg: &mut String, line: &Line, fans_out: bool, fans_in: bool) {
    let middle = |row: usize| TOP + row * ROW + BOX.1 / 2;
    let (x1, y1) = (20 + line.from.0 * COLUMN + BOX.0, middle(line.from.1));
    let (x2, y2) = (20 + line.to.0 * COLUMN, middle(line.to.1));
    let half = (x1 + x2) / 2;
    let _ = writeln!(
        svg,
        "<path class=\"{}\" stroke-width=\"{:.1}\" d=\"M{x1} {y1}C{half} {y1} {half} {y2} {x2} \
         {y2}\"><title>{}</title></path>",
        line.class,
        1.0 + 4.0 * line.weight,
        escaped(&line.label)
    );
    let (x, y, class) = match (fans_out, fans_in) {
        (false, _) => (x1 + 6, y1 - 4, "label"),
        (true, false) => (x2 - 6, y2 - 4, "label end"),
        (true, true) => (half, (y1 + y2) / 2 - 4, "label middle"),
    };
    text(svg, x, y, class, &line.label);
}

fn text(svg: &mut String, x: usize, y: usize, class: &str, text: &str) {
    let text = escaped(text);
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
}

/// Names come from programs.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::graph::Edge;
    use super::*;

    #[test]
    fn names_are_escaped() {
        let sum = Sum { count: 1, total: 5, longest: 5, unfinished: 0 };
        let edge = Edge {
            waiter: "a<b> [1]".into(),
            object: "lock \"x\"".into(),
            other: Some("&c [2]".into()),
            is_held: true,
            sum,
        };
        let drawn = Drawn {
            title: "graph".into(),
            edges: vec![edge],
            spins: vec![("&c [2]".into(), "f".into(), 0.5)],
            deadlocks: vec!["d".into()],
            notes: Vec::new(),
        };
        let svg = draw(&drawn);
        for part in ["a&lt;b&gt; [1]", "lock &quot;x&quot;", "&amp;c [2]", "held by", "deadlock: d"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
        assert_eq!(svg.matches("<path").count(), 3);
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
    }
}
