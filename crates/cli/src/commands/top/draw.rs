//! Draws a look on a terminal of any size.

use super::look::{History, Look};
use super::print;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Block, BorderType, LineGauge, Padding, Paragraph, RenderDirection, Row, Sparkline, Table,
};
use std::net::SocketAddr;

/// The one colour that is not a warning: pine green.
const PINE: Color = Color::Green;

/// Draws the server's values.
pub fn draw(frame: &mut Frame<'_>, history: &History, address: SocketAddr) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)])
            .areas(frame.area());
    title(frame, head, history, address);
    if let Some(look) = &history.look {
        look_at(frame, body, look, history);
    }
    footer(frame, foot, history);
}

fn title(frame: &mut Frame<'_>, area: Rect, history: &History, address: SocketAddr) {
    let look = history.look.as_ref();
    let version = look.map_or(String::new(), |look| format!(" {}", look.version));
    let left = Line::from(vec![
        " wollemi".bold().fg(PINE),
        Span::from(version),
        Span::from(format!("  {address}")).dim(),
    ]);
    frame.render_widget(left, area);
    if let Some(look) = look {
        let up = format!("up {} ", print::duration(look.uptime));
        frame.render_widget(Line::from(up).alignment(Alignment::Right), area);
    }
}

fn footer(frame: &mut Frame<'_>, area: Rect, history: &History) {
    let line = match &history.lost {
        Some(why) => Line::from(vec![" no answer: ".bold().red(), Span::from(why.as_str()).red()]),
        None => Line::from(vec![" q".bold(), " quit".dim()]),
    };
    frame.render_widget(line, area);
}

fn look_at(frame: &mut Frame<'_>, area: Rect, look: &Look, history: &History) {
    let [rates, state, log, commands] = Layout::vertical([
        Constraint::Length(if area.height >= 20 { 7 } else { 4 }),
        Constraint::Length(7),
        Constraint::Length(if look.log.is_some() { 3 } else { 0 }),
        Constraint::Min(0),
    ])
    .areas(area);
    curve(frame, rates, look, history);
    let [traffic, memory] = Layout::horizontal([Constraint::Percentage(42), Constraint::Min(0)]).areas(state);
    clients(frame, traffic, look);
    pool(frame, memory, look);
    if let Some(told) = &look.log {
        let style = match told.ok && told.checkpoint_ok && told.room_waits == 0.0 {
            true => Style::new(),
            false => Style::new().red(),
        };
        let line = Line::from(Span::styled(print::log(told), style));
        frame.render_widget(Paragraph::new(line).block(boxed("log")), log);
    }
    table(frame, commands, look);
}

fn boxed(title: &'static str) -> Block<'static> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().dim())
        .title(Span::from(format!(" {title} ")).bold())
        .padding(Padding::horizontal(1))
}

fn curve(frame: &mut Frame<'_>, area: Rect, look: &Look, history: &History) {
    let now = format!(" {}/s ", print::count(look.commands_per_second));
    let block = boxed("commands").title(Line::from(now.bold().fg(PINE)).alignment(Alignment::Right));
    let curve = Sparkline::default()
        .block(block)
        .direction(RenderDirection::RightToLeft)
        .style(Style::new().fg(PINE))
        .data(history.rates.iter().copied());
    frame.render_widget(curve, area);
}

fn pair(name: &'static str, value: String, style: Style) -> Line<'static> {
    Line::from(vec![
        Span::from(format!("{name:<12}")).dim(),
        Span::styled(value, style),
    ])
}

fn clients(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    let full = look.connections >= look.max_connections * 0.9 || look.rejected_connections > 0.0;
    let hits = look.hit_rate.map_or("-".to_owned(), print::share);
    let traffic = format!(
        "{}/s ↓ {}/s ↑",
        print::bytes(look.read_bytes_per_second),
        print::bytes(look.written_bytes_per_second)
    );
    let warned = if full { Style::new().yellow() } else { Style::new() };
    let failed = match look.backup.ok {
        true => Style::new(),
        false => Style::new().red(),
    };
    let lines = vec![
        pair("connections", print::connections(look), warned),
        pair("hit rate", hits, Style::new().bold()),
        pair("items", print::count(look.items), Style::new()),
        pair("traffic", traffic, Style::new()),
        pair("backup", print::backup(look), failed),
    ];
    frame.render_widget(Paragraph::new(lines).block(boxed("clients")), area);
}

fn pool(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    let block = boxed("memory");
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let [bar, space, items, resident, recovery] = Layout::vertical([Constraint::Length(1); 5]).areas(inner);
    let pool = &look.pool;
    let held = pool.used + pool.free + pool.unswept;
    let used = if held > 0.0 { pool.used / held } else { 0.0 };
    gauge(frame, bar, "pool", used, PINE);
    frame.render_widget(pair("", print::pool(look), Style::new()), space);
    frame.render_widget(pair("item bytes", print::item_memory(look), Style::new()), items);
    let in_all = format!("{} of the process", print::bytes(look.resident));
    frame.render_widget(pair("resident", in_all, Style::new()), resident);
    match look.recovery.state.as_str() {
        "running" if look.recovery.pages > 0.0 => {
            let done = look.recovery.pages_swept / look.recovery.pages;
            gauge(frame, recovery, "recovery", done, Color::Yellow);
        }
        state => {
            let style = if state == "failed" {
                Style::new().red()
            } else {
                Style::new()
            };
            frame.render_widget(pair("recovery", print::recovery(look), style), recovery);
        }
    }
}

fn gauge(frame: &mut Frame<'_>, area: Rect, name: &'static str, share: f64, colour: Color) {
    let label = Line::from(vec![
        Span::from(format!("{name:<12}")).dim(),
        Span::from(format!("{:>7} ", print::share(share))),
    ]);
    let bar = LineGauge::default()
        .ratio(share.clamp(0.0, 1.0))
        .label(label)
        .filled_symbol(symbols::line::THICK_HORIZONTAL)
        .unfilled_symbol(symbols::line::HORIZONTAL)
        .filled_style(Style::new().fg(colour))
        .unfilled_style(Style::new().dim());
    frame.render_widget(bar, area);
}

fn table(frame: &mut Frame<'_>, area: Rect, look: &Look) {
    let right = |text: String| Line::from(text).alignment(Alignment::Right);
    let line = |cells: [String; 7]| {
        let cells = cells.into_iter().enumerate();
        Row::new(cells.map(|(column, text)| match column {
            0 | 1 => Line::from(text),
            _ => right(text),
        }))
    };
    let rows = look.commands.iter().map(|command| {
        let row = line(print::cells(command));
        if command.per_second > 0.0 { row } else { row.dim() }
    });
    let widths = [
        Constraint::Length(10),
        Constraint::Min(12),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
    ];
    let head = line(print::HEADS.map(str::to_owned)).style(Style::new().dim());
    let table = Table::new(rows, widths).header(head).block(boxed("latency"));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use super::super::look::tests::scrapes;
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn screen(width: u16, height: u16, history: &History) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
        let address = SocketAddr::from(([127, 0, 0, 1], 9150));
        terminal
            .draw(|frame| draw(frame, history, address))
            .expect("drawn");
        let buffer = terminal.backend().buffer();
        let lines = buffer.content().chunks(usize::from(width));
        let lines = lines.map(|line| line.iter().map(|cell| cell.symbol()).collect::<String>());
        lines.collect::<Vec<_>>().join("\n")
    }

    fn seen() -> History {
        let (before, now) = scrapes();
        let mut history = History::default();
        history.add(before);
        history.add(now);
        history
    }

    /// All values fit on a screen of the usual size.
    #[test]
    fn a_server_is_shown() {
        let screen = screen(80, 24, &seen());
        for words in [
            "wollemi 1.2.3",
            "127.0.0.1:9150",
            "up 1 min 42 s",
            "100/s",
            "3 of 10",
            "50.0 %",
            "75.0 %",
            "running, 50.0 %",
            "3 MiB used",
            "2 MiB of 4 MiB, 5 evicted",
            "5 MiB of the process",
            "25.0 %",
            "3 MiB of 6 MiB, always 1/s of 90, 500 µs",
            "556 µs",
            "q quit",
        ] {
            assert!(screen.contains(words), "no '{words}' on:\n{screen}");
        }
        let row = screen.lines().find(|line| line.contains("redis"));
        assert!(
            row.is_some_and(|row| row.contains("get") && row.contains("1.2k")),
            "{screen}"
        );
    }

    /// Any size of the screen works, and so does a server without values yet.
    #[test]
    fn any_screen_will_do() {
        for history in [&seen(), &History::default()] {
            for width in [1, 2, 10, 40, 81, 300] {
                for height in [1, 2, 3, 9, 25, 100] {
                    screen(width, height, history);
                }
            }
        }
    }

    /// A server that no longer answers is still shown with its last values and the reason.
    #[test]
    fn a_lost_server_is_told() {
        let mut history = seen();
        history.lose("Connection refused".to_owned());
        let screen = screen(80, 24, &history);
        assert!(
            screen.contains("no answer: Connection refused") && screen.contains("100/s"),
            "{screen}"
        );
    }
}
