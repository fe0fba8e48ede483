//! Plain tables for people.

/// Rows under a header, columns aligned: the first column to the left, the others to the right.
pub fn render(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(i, (cell, &width))| {
                if i == 0 {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    };
    line(&mut header.iter().copied());
    for row in rows {
        line(&mut row.iter().map(String::as_str));
    }
    text
}

#[cfg(test)]
mod tests {
    /// Columns are as wide as their widest cell.
    #[test]
    fn columns_align() {
        let rows = [
            vec!["a".into(), "1.25".into()],
            vec!["longer".into(), "10".into()],
        ];
        assert_eq!(
            super::render(&["name", "n"], &rows),
            "name       n\na       1.25\nlonger    10\n"
        );
    }
}
