//! `top`: shows a running server, live, from its metrics.
//!
//! | module   | what it holds                                 |
//! |----------|-----------------------------------------------|
//! | `scrape` | fetching and parsing the metrics              |
//! | `look`   | the values derived from two scrapes           |
//! | `draw`   | a look on a terminal                          |
//! | `print`  | a look as text for scripts                    |

mod draw;
mod look;
mod print;
mod scrape;

use super::output;
use crate::exit::{Failure, Outcome};
use look::{History, Look};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use scrape::Scrape;
use std::io::{self, IsTerminal, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::time::Duration;

/// Timeout of a poll of the terminal, between two checks for news.
const TICK: Duration = Duration::from_millis(50);

/// The arguments of `top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Start the server with --metrics. On the terminal, q quits.")]
pub struct Args {
    /// Address of the server's metrics
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9150", value_parser = address)]
    metrics: SocketAddr,
    /// Seconds between two scrapes, and so the interval shown
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = seconds)]
    interval: f64,
    /// Print the values of one interval, and exit
    #[arg(long)]
    once: bool,
    /// With --once: print one JSON object
    #[arg(long, requires = "once")]
    json: bool,
}

/// Looks up the first address of a name.
fn address(text: &str) -> Result<SocketAddr, String> {
    let mut found = text.to_socket_addrs().map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "has no address".to_owned())
}

fn seconds(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|seconds| (0.1..=3600.0).contains(seconds));
    number.ok_or_else(|| "not a number of seconds from 0.1 to 3600".to_owned())
}

/// The result of a scrape.
type News = Result<Scrape, String>;

impl Args {
    /// Shows the server until the user quits.
    pub fn run(self) -> Result<Outcome, Failure> {
        let interval = Duration::from_secs_f64(self.interval);
        if self.once {
            self.print_once(interval)?;
            return Ok(Outcome::Done);
        }
        if !io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "the standard output is not a terminal: use --once".into(),
            ));
        }
        // Errors in the address are reported before the screen is switched.
        scrape::scrape(self.metrics).map_err(|why| self.unreachable(why))?;
        let news = watch(self.metrics, interval);
        let mut terminal = ratatui::try_init()?;
        let shown = show(&mut terminal, &news, self.metrics);
        ratatui::restore();
        shown?;
        Ok(Outcome::Done)
    }

    fn print_once(&self, interval: Duration) -> Result<(), Failure> {
        let look = || scrape::scrape(self.metrics).map_err(|why| self.unreachable(why));
        let before = look()?;
        std::thread::sleep(interval);
        let look = Look::between(Some(&before), &look()?);
        let mut out = output();
        match self.json {
            true => {
                serde_json::to_writer(&mut out, &look).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            false => print::print(&mut out, &look)?,
        }
        Ok(out.flush()?)
    }

    fn unreachable(&self, why: String) -> Failure {
        Failure::input(format!("metrics at {}", self.metrics), why)
    }
}

/// Scrapes the server repeatedly until the receiver is dropped.
fn watch(address: SocketAddr, interval: Duration) -> Receiver<News> {
    let (sender, news) = mpsc::sync_channel(1);
    std::thread::spawn(move || {
        while sender.send(scrape::scrape(address)).is_ok() {
            std::thread::sleep(interval);
        }
    });
    news
}

fn show(terminal: &mut DefaultTerminal, news: &Receiver<News>, address: SocketAddr) -> io::Result<()> {
    let mut history = History::default();
    loop {
        match news.try_recv() {
            Ok(Ok(scrape)) => history.add(scrape),
            Ok(Err(why)) => history.lose(why),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        terminal.draw(|frame| draw::draw(frame, &history, address))?;
        if event::poll(TICK)? && wants_to_quit(&event::read()?) {
            return Ok(());
        }
    }
}

fn wants_to_quit(event: &Event) -> bool {
    match event {
        Event::Key(key) if key.kind == KeyEventKind::Press => match key.code {
            KeyCode::Char('q') | KeyCode::Esc => true,
            KeyCode::Char('c') => key.modifiers.contains(KeyModifiers::CONTROL),
            _ => false,
        },
        // A resize redraws in any case.
        _ => false,
    }
}
