//! Tables that are shown as text, at most 80 columns wide, and as Markdown.

use super::harness::{Cell, Spread};
use super::markdown;
use super::table::{self, number, spread};
use ui::text::{WIDTH, wrap};

/// A field of a table.
#[derive(Clone)]
pub enum Field<'a> {
    Text(String),
    /// Text shows the median.
    Median(Option<Spread>),
    /// Text shows the median and the extremes.
    Spread(Option<Spread>),
    /// The value of a cell, or why there is none.
    Cell(&'a Cell),
}

impl<T: Into<String>> From<T> for Field<'_> {
    fn from(text: T) -> Self {
        Field::Text(text.into())
    }
}

impl Field<'_> {
    pub fn text(&self) -> String {
        match self {
            Field::Text(text) => text.clone(),
            Field::Median(s) => s.map_or(String::new(), |s| number(s.median)),
            Field::Spread(s) => s.map_or(String::new(), |s| spread(&s)),
            Field::Cell(cell) => table::value(cell),
        }
    }

    fn markdown(&self) -> String {
        match self {
            Field::Text(text) => text.clone(),
            Field::Median(s) | Field::Spread(s) => {
                s.map_or(String::new(), |s| markdown::spread(&s))
            }
            Field::Cell(cell) => markdown::value(cell),
        }
    }
}

/// Rows with a common title. In Markdown, each row begins with `keys` instead.
pub struct Section<'a> {
    pub title: String,
    pub keys: Vec<String>,
    pub rows: Vec<Vec<Field<'a>>>,
}

/// A table. Its first column names the rows. If it has no columns, text shows only the titles of
/// its sections.
pub struct Table<'a> {
    pub title: String,
    /// Names of the sections' keys.
    pub keys: Vec<&'static str>,
    pub columns: Vec<&'static str>,
    pub sections: Vec<Section<'a>>,
}

impl<'a> Table<'a> {
    /// Return a table without sections.
    pub fn plain(title: &str, columns: &[&'static str], rows: Vec<Vec<Field<'a>>>) -> Table<'a> {
        let section = Section { title: String::new(), keys: vec![], rows };
        Table {
            title: title.into(),
            keys: vec![],
            columns: columns.into(),
            sections: vec![section],
        }
    }

    fn is_empty(&self) -> bool {
        self.sections.iter().all(|s| s.rows.is_empty())
    }

    /// Render the table as lines of text, after an empty one. An empty table has no lines.
    pub fn text(&self) -> Vec<String> {
        if self.is_empty() {
            return vec![];
        }
        let heading = self.columns.iter().map(|name| name.to_string()).collect();
        let texts = |row: &Vec<Field>, is_below: bool| -> Vec<String> {
            let mut texts: Vec<String> = row.iter().map(Field::text).collect();
            if let Some(name) = texts.first_mut().filter(|_| is_below) {
                name.insert_str(0, "  ");
            }
            texts
        };
        let mut blocks: Vec<(Vec<String>, Vec<Vec<String>>)> = vec![(vec![], vec![heading])];
        for section in &self.sections {
            let is_below = !section.title.is_empty();
            let title = if is_below { wrap(&section.title, "", 2) } else { vec![] };
            blocks.push((title, section.rows.iter().map(|row| texts(row, is_below)).collect()));
        }
        let width = |column: usize| {
            let texts = blocks.iter().flat_map(|b| &b.1).filter_map(|row| row.get(column));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let is_narrow = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1) <= WIDTH;
        let gap = if is_narrow { 2 } else { 1 };
        let line = |row: Vec<String>| {
            let mut fields = row.iter().zip(&widths);
            let first = fields.next().map_or(String::new(), |(name, w)| format!("{name:w$}"));
            let rest = fields.map(|(text, w)| format!("{:gap$}{text:>w$}", ""));
            (first + &rest.collect::<String>()).trim_end().to_string()
        };
        let mut lines = vec![String::new()];
        lines.extend(wrap(&self.title, "", 0).into_iter().filter(|l| !l.is_empty()));
        for (title, rows) in blocks {
            lines.extend(title);
            lines.extend(rows.into_iter().filter(|row| !row.is_empty()).map(line));
        }
        lines
    }

    /// Render the table in Markdown. An empty table is empty text.
    pub fn markdown(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = self.keys.iter().chain(&self.columns).copied().collect();
        let title = if self.title.is_empty() { "" } else { &format!("\n{}\n", self.title) };
        let rows = self.sections.iter().flat_map(|s| s.rows.iter().map(move |row| (s, row)));
        let lines = rows.map(|(section, row)| {
            let mut fields: Vec<String> =
                section.keys.iter().cloned().chain(row.iter().map(Field::markdown)).collect();
            fields.resize(names.len(), String::new());
            markdown::line(&fields)
        });
        title.to_string() + &markdown::head(&names) + &lines.collect::<String>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_markdown() {
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        let row = |name: &str| vec![name.into(), Field::Median(spread), Field::Spread(spread)];
        let section = Section { title: "a:".into(), keys: vec!["a".into()], rows: vec![row("x")] };
        let table = Table {
            title: "Times".into(),
            keys: vec!["program"],
            columns: vec!["", "s", "time"],
            sections: vec![section],
        };
        let text = ["", "Times", "        s            time", "a:", "  x  2.00  2.00 1.00-3.00"];
        assert_eq!(table.text(), text);
        assert!(table.markdown().ends_with("| a | x | 2.00 (1.00-3.00) | 2.00 (1.00-3.00) |\n"));
        let long = vec!["x".repeat(75).into(), "123".into(), "4".into()];
        let long = Table::plain("", &["", "", ""], vec![long, vec!["failed".into()]]);
        assert_eq!(long.text()[2].len(), 81);
        assert!(Table::plain("Times", &[""], vec![]).text().is_empty());
    }
}
