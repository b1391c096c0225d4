//! A figure's numbers, for the terminal or as JSON.

use serde::Serialize;

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
            lines().filter_map(|l| l.get(i)).map(|c| c.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut text =
            if self.title.is_empty() { String::new() } else { self.title.clone() + "\n" };
        for line in lines() {
            let cells = line.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| match i {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            });
            text += cells.collect::<String>().trim_end();
            text.push('\n');
        }
        for line in self.note.lines() {
            text += line;
            text.push('\n');
        }
        text
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
