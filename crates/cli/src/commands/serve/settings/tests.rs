use super::*;
use std::fs;

fn gather(args: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Failure> {
    let argv = ["wollemi"].iter().chain(args).map(OsString::from).collect();
    let variable = |name: &str| {
        let set = variables.iter().find(|(set, _)| *set == name);
        set.map(|(_, value)| OsString::from(value))
    };
    Settings::gather(argv, variable)
}

/// Returns the printed line of a setting, without its name.
fn shown<'t>(text: &'t str, name: &str) -> &'t str {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} = ")));
    line.unwrap_or_else(|| panic!("no {name} in:\n{text}"))
}

fn text(settings: &Settings) -> String {
    let mut out = Vec::new();
    show(&mut out, &settings.all, false).expect("writing to memory");
    String::from_utf8(out).expect("UTF-8")
}

fn file(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("w.toml");
    fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("UTF-8").to_owned();
    (directory, path)
}

/// Flags override the environment, the environment overrides the file, and the file overrides the defaults; each
/// setting names its source.
#[test]
fn the_strongest_source_speaks() {
    let (_directory, path) = file(
        "max-connections = 1\nidle_timeout = 2\nthreads = 3\nmap = \"file\"\nredis = ['127.0.0.1:1', '127.0.0.1:2']\n",
    );
    let variables = [
        ("WOLLEMI_MAX_CONNECTIONS", "10"),
        ("WOLLEMI_IDLE_TIMEOUT", "20"),
        ("WOLLEMI_RECOVERY_THREADS", ""),
        ("WOLLEMI_CONFIG", path.as_str()),
    ];
    let args = ["--map", "flag", "serve", "--max-connections", "100"];
    let settings = gather(&args, &variables).expect("settings");
    let text = text(&settings);
    assert_eq!(shown(&text, "max-connections"), "100  # command line");
    assert_eq!(shown(&text, "map"), "\"flag\"  # command line");
    assert_eq!(shown(&text, "idle-timeout"), "20  # WOLLEMI_IDLE_TIMEOUT");
    assert_eq!(shown(&text, "threads"), format!("3  # {path}:3"));
    let redis = format!("[\"127.0.0.1:1\",\"127.0.0.1:2\"]  # {path}:5");
    assert_eq!(shown(&text, "redis"), redis);
    assert_eq!(shown(&text, "recovery-threads"), "1  # default");
    assert_eq!(shown(&text, "no-redis"), "false  # default");
    assert_eq!(settings.context.map_or("none"), "flag");
}

/// The settings are printed as a file that gives the same settings.
#[test]
fn what_is_shown_can_be_read() {
    let variables = [
        ("WOLLEMI_REDIS", "127.0.0.1:1, 127.0.0.1:2"),
        ("WOLLEMI_ALLOW_REMOTE", "yes"),
        ("WOLLEMI_MAP", "true"),
        ("WOLLEMI_POOL", "a \"quoted\" #name"),
    ];
    let without_sources = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| Some(line.rsplit_once("  # ")?.0.to_owned()))
            .collect::<Vec<_>>()
    };
    for (args, variables) in [(&["serve"][..], &variables[..]), (&["serve", "--no-redis"], &[])] {
        let text_of_first = text(&gather(args, variables).expect("settings"));
        let (_directory, path) = file(&text_of_first);
        let second = gather(&["serve", "--config", &path], &[]).expect("settings");
        assert_eq!(without_sources(&text(&second)), without_sources(&text_of_first));
        assert!(without_sources(&text_of_first).len() > 10);
    }
}

/// A setting is overridden not only by its own flag, but also by a flag that excludes it; a variable can turn off what
/// the file has turned on.
#[test]
fn what_excludes_a_setting_is_stronger_too() {
    let (_directory, path) = file("redis = '127.0.0.1:1'\nallow-remote = true\n");
    let args = ["serve", "--no-redis", "--config", &path];
    let settings = gather(&args, &[("WOLLEMI_ALLOW_REMOTE", "false")]).expect("settings");
    let text_of_it = text(&settings);
    assert_eq!(shown(&text_of_it, "no-redis"), "true  # command line");
    assert!(text_of_it.contains("\n# redis is not set\n"), "{text_of_it}");
    assert_eq!(
        shown(&text_of_it, "allow-remote"),
        "false  # WOLLEMI_ALLOW_REMOTE"
    );
    let (_directory, path) = file("redis = '127.0.0.1:1'\n");
    let args = ["serve", "--config", &path];
    let text_of_it = text(&gather(&args, &[("WOLLEMI_NO_REDIS", "false")]).expect("settings"));
    assert!(shown(&text_of_it, "redis").contains("127.0.0.1:1"));
    let (_directory, path) = file("no-redis = true\n");
    let args = ["serve", "--redis", "127.0.0.1:1", "--config", &path];
    let text_of_it = text(&gather(&args, &[]).expect("settings"));
    assert_eq!(shown(&text_of_it, "no-redis"), "false  # default");
}

/// An error names the setting and its source.
#[test]
fn mistakes_are_placed() {
    for (content, line, words) in [
        (
            "\n# fine\nmax-conections = 1\n",
            3,
            &["unknown key 'max-conections'"][..],
        ),
        ("config = 'x'\n", 1, &["unknown key"]),
        ("[serve]\nthreads = 1\n", 1, &["unknown key 'serve'"]),
        ("threads = 1\nthreads = 2\n", 2, &["duplicate"]),
        ("max-connections = 1\nmax_connections = 2\n", 2, &["twice"]),
        ("\nthreads = 'many'\n", 2, &["many", "--threads"]),
        ("threads = 1.5\n", 1, &["'threads'", "an integer"]),
        ("threads = [1, 2]\n", 1, &["'threads'"]),
        ("no-redis = 'yes'\n", 1, &["'no-redis'", "true or false"]),
        ("redis = []\n", 1, &["'redis'", "at least one value"]),
        ("redis = [true]\n", 1, &["'redis'", "a string"]),
        ("redis = 'nowhere'\n", 1, &["nowhere"]),
        (
            "no-redis = true\n\nredis = '127.0.0.1:1'\n",
            3,
            &["'no-redis'", "'redis'", ":1)"],
        ),
        ("\n\nthreads = \n", 3, &[]),
    ] {
        let (_directory, path) = file(content);
        let refused = gather(&["serve", "--config", &path], &[])
            .expect_err(content)
            .to_string();
        assert!(refused.starts_with(&format!("{path}:{line}: ")), "{refused}");
        for word in words {
            assert!(refused.contains(word), "no '{word}' in: {refused}");
        }
    }
    for (name, value) in [("WOLLEMI_THREADS", "x"), ("WOLLEMI_NO_REDIS", "maybe")] {
        let refused = gather(&["serve"], &[(name, value)]).expect_err(value).to_string();
        assert!(refused.starts_with(&format!("{name}: ")), "{refused}");
    }
    gather(&["serve", "--config", "/nowhere.toml"], &[]).expect_err("no file");
}
