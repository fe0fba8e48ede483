//! The effective settings of `serve`: from flags, the environment, a file, or the defaults, in this order.
//!
//! I1 Every long option of `serve`, except [`NOT_SETTINGS`], is a setting with one name: `--max-connections 5`,
//!    `WOLLEMI_MAX_CONNECTIONS=5`, and `max-connections = 5` in the file. Settings of the environment and the file are
//!    turned into flags, so that one parser reads all.
//! I2 A setting comes as a whole from the first source that sets it, or that sets an option which excludes it.
//!
//! Not here: what the settings mean (`commands::serve`, `context`), the file's syntax (`file`).

mod file;
mod shown;

use super::super::Command as Subcommand;
use super::Args;
use crate::Cli;
use crate::context::{Context, InPool};
use crate::exit::Failure;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
pub use shown::show;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options that are not settings: they locate settings, apply once, or only print something.
const NOT_SETTINGS: &[&str] = &["config", "print-config", "after-power-loss", "help", "version"];

/// The source of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The command line.
    Flag,
    /// A variable of the environment.
    Variable(String),
    /// A line of the file.
    Line(PathBuf, usize),
    /// None of the other sources.
    Default,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Source::Flag => f.write_str("command line"),
            Source::Variable(name) => f.write_str(name),
            Source::Line(path, line) => write!(f, "{}:{line}", path.display()),
            Source::Default => f.write_str("default"),
        }
    }
}

/// The values of one setting in the environment or the file.
#[derive(Clone, Debug)]
struct Given {
    name: String,
    values: Values,
    source: Source,
}

#[derive(Clone, Debug)]
enum Values {
    Switch(bool),
    Texts(Vec<OsString>),
}

/// A setting that one of the sources has given.
struct Settled {
    name: String,
    source: Source,
    /// Whether it is a switch that is turned off.
    off: bool,
}

/// All effective settings.
#[derive(Debug)]
pub struct Settings {
    /// The arguments, as if all settings had been given as flags.
    pub args: Args,
    pub context: Context,
    /// The settings, in the order of the options.
    pub all: Vec<Setting>,
}

/// One setting: its name, its values, if any, and their source.
#[derive(Debug)]
pub struct Setting {
    name: String,
    values: Values,
    source: Source,
}

impl Settings {
    /// Gathers the effective settings for a call of `serve` with these arguments, which are already validated.
    pub fn gather(
        mut argv: Vec<OsString>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Settings, Failure> {
        let mut command = Cli::command();
        command.build();
        let given = parse(&argv)?;
        let options: Vec<&Arg> = options(&command).collect();
        let flag = |option: &&Arg| Settled {
            name: name(option).to_owned(),
            source: Source::Flag,
            off: false,
        };
        let flags = options.iter().filter(|option| is_flag(&given, option));
        let mut settled: Vec<Settled> = flags.map(flag).collect();
        let variables = variables(&options, &variable)?;
        let path = match below(&given).get_one::<PathBuf>("config") {
            Some(path) => Some(path.clone()),
            None => set(&variable, "config").map(PathBuf::from),
        };
        let lines = match path {
            Some(path) => file::read(&path, &options)?,
            None => Vec::new(),
        };
        if argv.last().is_some_and(|last| last == "--") {
            argv.pop();
        }
        for layer in [variables, lines] {
            let stronger = settled.len();
            for said in layer {
                let excluding = excluded_by(&command, &options, &said.name);
                // A switch that is off excludes nothing.
                let excludes = |one: &&Settled| !one.off && excluding.contains(&one.name);
                let wins = |one: &Settled| one.name == said.name || excludes(&one);
                if settled[..stronger].iter().any(wins) {
                    continue;
                }
                let off = matches!(said.values, Values::Switch(false));
                if let Some(other) = settled.iter().find(excludes).filter(|_| !off) {
                    return Err(both(&said, other));
                }
                let flags = said.flags();
                check(&flags, &said.source)?;
                argv.extend(flags);
                settled.push(Settled {
                    off,
                    name: said.name,
                    source: said.source,
                });
            }
        }
        let matches = parse(&argv)?;
        let is_excluded = |option: &Arg| {
            let excluding = excluded_by(&command, &options, name(option));
            settled
                .iter()
                .any(|one| !one.off && excluding.contains(&one.name))
        };
        let all = options.iter().map(|option| {
            let mut setting = setting(option, &matches, &settled);
            if let (Source::Default, Values::Texts(texts)) = (&setting.source, &mut setting.values)
                && is_excluded(option)
            {
                // The default is not in effect.
                texts.clear();
            }
            setting
        });
        let all = all.collect();
        match Cli::from_arg_matches(&matches).map_err(|error| wrong(&error))? {
            Cli {
                before,
                command: Subcommand::Serve(serve),
            } => {
                let InPool { args, context } = *serve;
                Ok(Settings {
                    args,
                    context: context.after(before),
                    all,
                })
            }
            _ => Err(Failure::Usage("only `serve` has settings".into())),
        }
    }
}

impl Given {
    fn flags(&self) -> Vec<OsString> {
        let name = &self.name;
        match &self.values {
            Values::Switch(true) => vec![format!("--{name}").into()],
            Values::Switch(false) => Vec::new(),
            Values::Texts(texts) => {
                let flag = |text: &OsString| {
                    let mut flag = OsString::from(format!("--{name}="));
                    flag.push(text);
                    flag
                };
                texts.iter().map(flag).collect()
            }
        }
    }
}

/// Returns the options of `serve` that are settings.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let serve = command.find_subcommand("serve");
    let options = serve.into_iter().flat_map(Command::get_arguments);
    options.filter(|option| {
        option
            .get_long()
            .is_some_and(|name| !NOT_SETTINGS.contains(&name))
    })
}

fn name(option: &Arg) -> &str {
    option.get_long().unwrap_or_default()
}

fn is_switch(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue)
}

fn is_list(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::Append)
}

/// Returns the matches after the command's name.
fn below(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand_matches("serve").unwrap_or(matches)
}

/// Returns the matches that contain an option: those after the command's name, if both do.
fn matches_with<'m>(matches: &'m ArgMatches, option: &Arg) -> &'m ArgMatches {
    let id = option.get_id().as_str();
    let given = |matches: &&ArgMatches| {
        let source = matches
            .try_contains_id(id)
            .ok()
            .and_then(|_| matches.value_source(id));
        source == Some(ValueSource::CommandLine)
    };
    [below(matches), matches]
        .into_iter()
        .find(given)
        .unwrap_or(below(matches))
}

fn is_flag(matches: &ArgMatches, option: &Arg) -> bool {
    let id = option.get_id().as_str();
    matches_with(matches, option).value_source(id) == Some(ValueSource::CommandLine)
}

/// Returns the names of the options that exclude this one.
fn excluded_by(command: &Command, options: &[&Arg], wanted: &str) -> Vec<String> {
    let Some(serve) = command.find_subcommand("serve") else {
        return Vec::new();
    };
    let excludes = |one: &Arg, other: &str| {
        let all = serve.get_arg_conflicts_with(one);
        all.iter().any(|conflict| name(conflict) == other)
    };
    let this = options.iter().find(|option| name(option) == wanted);
    let either =
        |other: &&&Arg| excludes(other, wanted) || this.is_some_and(|this| excludes(this, name(other)));
    options
        .iter()
        .filter(either)
        .map(|other| name(other).to_owned())
        .collect()
}

fn parse(argv: &[OsString]) -> Result<ArgMatches, Failure> {
    Cli::command()
        .try_get_matches_from(argv)
        .map_err(|error| wrong(&error))
}

/// Returns clap's error message on one line.
fn said(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| !line.is_empty());
    let line = lines.collect::<Vec<_>>().join(" ");
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

fn wrong(error: &clap::Error) -> Failure {
    Failure::Usage(said(error))
}

/// Refuses flags that the parser would refuse, naming their source.
fn check(flags: &[OsString], source: &Source) -> Result<(), Failure> {
    let words = ["wollemi", "serve"].into_iter().map(OsString::from);
    let argv: Vec<_> = words.chain(flags.iter().cloned()).collect();
    match Cli::command().try_get_matches_from(argv) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Usage(format!("{source}: {}", said(&error)))),
    }
}

/// Returns the failure of two settings of one layer that exclude each other.
fn both(said: &Given, other: &Settled) -> Failure {
    let Given { name, source, .. } = said;
    Failure::Usage(format!(
        "{source}: '{name}' excludes '{}' ({})",
        other.name, other.source
    ))
}

/// Returns the name of a setting's variable.
fn variable_of(name: &str) -> String {
    format!("WOLLEMI_{}", name.replace('-', "_").to_ascii_uppercase())
}

/// Returns the value of a setting's variable. An empty one counts as unset.
fn set(variable: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<OsString> {
    variable(&variable_of(name)).filter(|value| !value.is_empty())
}

/// Reads the settings from the environment.
fn variables(options: &[&Arg], variable: &impl Fn(&str) -> Option<OsString>) -> Result<Vec<Given>, Failure> {
    let mut all = Vec::new();
    for option in options {
        let Some(value) = set(variable, name(option)) else {
            continue;
        };
        let source = Source::Variable(variable_of(name(option)));
        let values = match value.to_str() {
            Some("true" | "yes" | "on" | "1") if is_switch(option) => Values::Switch(true),
            Some("false" | "no" | "off" | "0") if is_switch(option) => Values::Switch(false),
            _ if is_switch(option) => {
                return Err(Failure::Usage(format!("{source}: expected true or false")));
            }
            Some(list) if is_list(option) => {
                Values::Texts(list.split(',').map(|text| text.trim().into()).collect())
            }
            _ => Values::Texts(vec![value]),
        };
        all.push(Given {
            name: name(option).to_owned(),
            values,
            source,
        });
    }
    Ok(all)
}

fn setting(option: &Arg, matches: &ArgMatches, settled: &[Settled]) -> Setting {
    let name = name(option);
    let source = settled.iter().find(|settled| settled.name == name);
    let (found, id) = (matches_with(matches, option), option.get_id().as_str());
    Setting {
        name: name.to_owned(),
        values: match is_switch(option) {
            true => Values::Switch(source.is_some() && found.get_flag(id)),
            false => Values::Texts(
                found
                    .get_raw(id)
                    .into_iter()
                    .flatten()
                    .map(OsString::from)
                    .collect(),
            ),
        },
        source: source.map_or(Source::Default, |settled| settled.source.clone()),
    }
}

#[cfg(test)]
mod tests;
