//! A figure's numbers, for the terminal or as JSON.

use serde::Serialize;
use ui::text::row;

use super::plot::Plot;

#[derive(Serialize)]
pub struct Table {
    pub title: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub note: String,
}

#[derive(Serialize)]
pub struct Figure {
    pub figure: &'static str,
    pub tables: Vec<Table>,
    pub plots: Vec<Plot>,
}

impl Table {
    pub fn new<S: Into<String>>(title: &str, columns: impl IntoIterator<Item = S>) -> Table {
        let columns = columns.into_iter().map(Into::into).collect();
        Table { title: title.into(), columns, rows: Vec::new(), note: String::new() }
    }

    pub fn row(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        self.rows.push(std::iter::once(name.into()).chain(cells).collect());
    }

    /// Format as text. The first column is left-aligned, the others are right-aligned.
    pub fn text(&self) -> String {
        let lines = || std::iter::once(&self.columns).chain(&self.rows);
        let width = |i: usize| {
            let lengths = lines().filter_map(|line| line.get(i)).map(|cell| cell.chars().count());
            let most = lengths.max().unwrap_or(0) as isize;
            // Two spaces are between columns.
            if i == 0 { -most } else { most + 1 }
        };
        let widths: Vec<isize> = (0..self.columns.len()).map(width).collect();
        let mut text: Vec<String> = self.title.lines().map(String::from).collect();
        text.extend(lines().map(|line| row(&widths, line).trim_end().to_string()));
        text.extend(self.note.lines().map(String::from));
        text.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new("T", ["a", "number"]);
        table.row("long one", ["1".into()]);
        table.note = "n".into();
        assert_eq!(table.text(), "T\na         number\nlong one       1\nn\n");
    }
}
