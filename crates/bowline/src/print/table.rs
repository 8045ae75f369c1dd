//! Columns aligned by spaces, without borders.

use unicode_width::UnicodeWidthStr as _;

/// A colour with a meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tint {
    /// None.
    #[default]
    Plain,
    /// It is well.
    Good,
    /// Not yet, or not quite.
    Soft,
    /// It is not well.
    Bad,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tint: Tint,
}

impl Cell {
    /// A cell with a meaning.
    pub fn tinted(text: impl Into<String>, tint: Tint) -> Self {
        Self { text: text.into(), tint }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: text.into(), tint: Tint::Plain }
    }
}

/// Rows under headers.
#[derive(Clone, Debug, Default)]
pub struct Table {
    headers: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    widths: Vec<usize>,
}

impl Table {
    /// With these columns.
    pub fn new(headers: Vec<&'static str>) -> Self {
        let widths = headers.iter().map(|h| h.len()).collect();
        Self { headers, rows: vec![], widths }
    }

    /// The same, with room for rows that are not known yet: see [`Table::next`].
    #[must_use]
    pub fn roomy(mut self) -> Self {
        for (width, header) in self.widths.iter_mut().zip(&self.headers) {
            *width = (*width).max(room(header));
        }
        self
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Cell>) {
        self.grow(&row);
        self.rows.push(row);
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// All of it.
    pub fn render(&self, colour: bool) -> String {
        let headers: Vec<Cell> = self.headers.iter().map(|h| Cell::from(*h)).collect();
        let rows = self.rows.iter().map(|row| self.line(row, false, colour));
        std::iter::once(self.line(&headers, true, false)).chain(rows).collect()
    }

    /// One more row for a table that was already printed; columns keep at least their width.
    pub fn next(&mut self, row: &[Cell], colour: bool) -> String {
        self.grow(row);
        self.line(row, false, colour)
    }

    fn grow(&mut self, row: &[Cell]) {
        for (width, cell) in self.widths.iter_mut().zip(row) {
            *width = (*width).max(shown(&cell.text).width());
        }
    }

    fn line(&self, row: &[Cell], is_header: bool, colour: bool) -> String {
        let mut out = String::new();
        for (at, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
            let text = if is_header { cell.text.clone() } else { shown(&cell.text) };
            let pad = width.saturating_sub(text.width());
            out.push_str(&painted(&text, cell.tint, colour));
            if at + 1 < row.len() {
                out.extend(std::iter::repeat_n(' ', pad + 3));
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
        out
    }
}

/// How wide a column is where rows come one by one: the words that its cells mostly are.
fn room(header: &str) -> usize {
    match header {
        "AGENT" | "NAMESPACE" | "WHO" | "MODE" | "LINK" => 10,
        "SYNC" => "OutOfSync".len(),
        "HEALTH" => "Progressing".len(),
        "KIND" => 12,
        "NAME" | "KEY" => 20,
        "VERB" => 17,
        "VALUE" | "WHAT" => 30,
        "LAG" | "AGE" => 5,
        "TIME" => "2026-11-16T00:00:00.000Z".len(),
        _ => 0,
    }
}

/// An empty cell shows as `-`, so that columns can be counted; nothing breaks the line.
fn shown(text: &str) -> String {
    if text.is_empty() {
        return "-".into();
    }
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn painted(text: &str, tint: Tint, colour: bool) -> String {
    let code = match tint {
        Tint::Good => 32,
        Tint::Soft => 33,
        Tint::Bad => 31,
        Tint::Plain => 0,
    };
    if colour && code > 0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_empty_cells_marked() {
        let mut table = Table::new(vec!["NAME", "HEALTH", "AGE"]);
        table.push(vec!["web".into(), Cell::tinted("Healthy", Tint::Good), "5m".into()]);
        table.push(vec!["database-1".into(), "".into(), "two\nlines".into()]);
        let expected = "NAME         HEALTH    AGE\nweb          Healthy   5m\ndatabase-1   -         two lines\n";
        assert_eq!(table.render(false), expected);
        assert!(table.render(true).contains("\x1b[32mHealthy\x1b[0m   5m"));
        let next = table.next(&["a-much-longer-name".into(), "x".into(), "1s".into()], false);
        assert_eq!(next, "a-much-longer-name   x         1s\n");
    }

    #[test]
    fn rows_that_come_later_stand_under_the_first() {
        let mut table = Table::new(vec!["NAME", "SYNC", "HEALTH", "AGE"]).roomy();
        let first = table.render(false);
        let next = table.next(
            &["database".into(), "OutOfSync".into(), "Progressing".into(), "1s".into()],
            false,
        );
        assert_eq!(first.find("AGE"), next.find("1s"), "{first}{next}");
    }

    #[test]
    fn wide_letters_take_two_columns() {
        let mut table = Table::new(vec!["KEY", "REV"]);
        table.push(vec!["\u{6771}\u{4eac}".into(), "1".into()]);
        table.push(vec!["abcd".into(), "2".into()]);
        let text = table.render(false);
        assert!(text.contains("\u{6771}\u{4eac}   1\n") && text.contains("abcd   2\n"), "{text}");
    }
}
