//! The picture around plots: its size, its title, and what it says of itself where it stands alone.

use super::axes::LEFT;
use super::{Labels, escape};
use std::fmt::Write;

const HEADING_LINE: f64 = 17.0;
const NOTE_LINE: f64 = 20.0;

/// A picture of one figure's plots, below its heading if it has one; what stands alone says at its foot what its marks are.
pub fn picture(labels: &Labels<'_>, inner: f64, height: f64, note: &str, plots: &str) -> String {
    let width = LEFT + inner + 12.0;
    let (mut heading, mut at) = (String::new(), 0.0);
    if let Some((figure, part)) = labels.heading {
        let lines = wrapped(figure, width).into_iter().map(|line| (line, "bold"));
        let parts = wrapped(part, width).into_iter().map(|line| (line, "normal"));
        for (line, weight) in lines.chain(parts) {
            at += HEADING_LINE;
            // Writing to a string does not fail, here and below.
            let _ = writeln!(
                heading,
                "<text x=\"12\" y=\"{at:.0}\" font-size=\"13\" font-weight=\"{weight}\" fill=\"#222\">{}</text>",
                escape(&line)
            );
        }
        at += 6.0;
    }
    let mut foot = at + height;
    if labels.heading.is_some() {
        let _ = writeln!(
            heading,
            "<text x=\"12\" y=\"{:.0}\" font-size=\"11\" fill=\"#666\">{}</text>",
            foot + 8.0,
            escape(note)
        );
        foot += NOTE_LINE;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {foot:.0}\" width=\"{width:.0}\" \
         role=\"img\" style=\"background:#fff\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n{heading}<g transform=\"translate(0 {at:.0})\">\n{plots}</g></svg>\n",
        escape(labels.title),
    )
}

/// In lines that are about so wide in a heading's letters.
fn wrapped(text: &str, width: f64) -> Vec<String> {
    let most = (width / 7.2) as usize;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands alone has its heading above it, in lines that fit; what does not has its title for who cannot see it.
    #[test]
    fn pictures_alone_have_headings() {
        let labels = |heading| Labels {
            title: "a < b",
            heading,
            x: "x",
            y: "y",
        };
        let within = picture(&labels(None), 500.0, 100.0, "note", "");
        assert!(within.contains("<title>a &lt; b</title>") && !within.contains("<text"));
        assert!(within.contains("viewBox=\"0 0 576 100\""));
        let long = "word ".repeat(30);
        let alone = picture(&labels(Some((&long, "part"))), 500.0, 100.0, "note", "");
        assert_eq!(alone.matches("bold").count(), 2);
        assert!(alone.contains(">part<") && alone.contains(">note<"));
        assert!(alone.contains("viewBox=\"0 0 576 177\"") && alone.contains("translate(0 57)"));
    }
}
