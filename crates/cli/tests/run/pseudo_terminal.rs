//! A pseudo-terminal with the command on it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use rustix::termios::{LocalModes, tcgetattr};

use crate::run::scene::{PATIENCE, PLAINCALL, Scene, pause, wait_until};

/// A terminal with the command on it.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    screen: vt100::Parser,
    raw: Vec<u8>,
    is_closed: bool,
}

pub(crate) struct Options<'a> {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
    pub(crate) command: &'a str,
    pub(crate) arguments: &'a [&'a str],
    pub(crate) environment: &'a [(&'a str, &'a str)],
    pub(crate) stdin: Option<File>,
    pub(crate) stdout: Option<File>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            rows: 24,
            columns: 80,
            command: "run",
            arguments: &["reply.txt", "--tools", "tools.toml"],
            environment: &[],
            stdin: None,
            stdout: None,
        }
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

impl Terminal {
    pub(crate) fn start(scene: &Scene, options: Options<'_>) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(options.rows, options.columns))
            .unwrap();
        let mut command = Command::new(PLAINCALL)
            .arg(options.command)
            .args(options.arguments)
            .current_dir(scene.path(""))
            .env_clear()
            .envs(scene.environment())
            .env("TERM", "xterm-256color")
            .env("LANG", "C.UTF-8")
            .envs(options.environment.iter().copied());
        if let Some(stdin) = options.stdin {
            command = command.stdin(stdin);
        }
        if let Some(stdout) = options.stdout {
            command = command.stdout(stdout);
        }
        let child = command.spawn(pts).unwrap();
        let seen = Arc::new(Mutex::new(Seen {
            screen: vt100::Parser::new(cells(options.rows), cells(options.columns), 1000),
            raw: Vec::new(),
            is_closed: false,
        }));
        let pty = Arc::new(pty);
        let (reader, reading) = (Arc::clone(&pty), Arc::clone(&seen));
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = (&*reader).read(&mut bytes) {
                let mut seen = reading.lock().unwrap();
                seen.screen.process(&bytes[..count]);
                seen.raw.extend_from_slice(&bytes[..count]);
            }
            reading.lock().unwrap().is_closed = true;
        });
        Self { pty, child, seen }
    }

    /// Returns the current text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Calls a function with the current screen.
    pub(crate) fn with_screen<T>(&self, look: impl FnOnce(&vt100::Screen) -> T) -> T {
        look(self.seen.lock().unwrap().screen.screen())
    }

    /// Returns all bytes that were written.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().raw).into_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        while !self.screen().contains(text) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{text:?} never came:\n{}",
                self.screen()
            );
            pause(Duration::from_millis(5));
        }
    }

    /// Waits until a line can be typed: the prompt is the last line, and the program reads each key. Before that the
    /// system may take Ctrl-D for itself.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) {
        let begun = Instant::now();
        while self.is_in_order() || self.screen().lines().last().map(str::trim_end) != Some(">") {
            assert!(
                begun.elapsed() < PATIENCE,
                "no prompt came:\n{}",
                self.screen()
            );
            pause(Duration::from_millis(5));
        }
    }

    pub(crate) fn type_keys(&self, keys: &str) {
        self.type_bytes(keys.as_bytes());
    }

    pub(crate) fn type_bytes(&self, bytes: &[u8]) {
        (&*self.pty).write_all(bytes).unwrap();
    }

    /// Answers a question. A no gives no reason.
    pub(crate) fn answer(&self, key: char) {
        let asked = || {
            self.raw()
                .matches("Reason for the model (optional):")
                .count()
        };
        let before = asked();
        self.type_keys(&key.to_string());
        if key == 'n' {
            wait_until("the reason is asked for", || asked() > before);
            self.type_keys("\r");
        }
    }

    /// Turns to the last page of a question. Returns the screen of each page.
    #[track_caller]
    pub(crate) fn page_through(&self) -> Vec<String> {
        let mut screens = Vec::new();
        for page in 1.. {
            let number = format!("page {page} of ");
            let begun = Instant::now();
            let mut typed = begun;
            let is_last = loop {
                let screen = self.screen();
                if screen.contains(&number) {
                    break false;
                }
                if screen.contains("?  [y]es / [n]o / [") || screen.contains("?  [r]un again") {
                    break true;
                }
                assert!(
                    begun.elapsed() < PATIENCE,
                    "{number:?} never came:\n{screen}"
                );
                // The program ignores a key that it reads together with the previous one.
                if page > 1 && typed.elapsed() > Duration::from_secs(2) {
                    self.type_keys("m");
                    typed = Instant::now();
                }
                pause(Duration::from_millis(5));
            };
            screens.push(self.screen());
            if is_last {
                break;
            }
            self.type_keys("m");
        }
        screens
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.pty.resize(Size::new(rows, columns)).unwrap();
        self.seen
            .lock()
            .unwrap()
            .screen
            .set_size(cells(rows), cells(columns));
    }

    /// Returns whether lines are edited and keys are echoed, as a shell expects.
    pub(crate) fn is_in_order(&self) -> bool {
        let modes = tcgetattr(&*self.pty).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Kills the command.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end of the command and returns everything that it wrote, which is UTF-8.
    pub(crate) fn finish_raw(mut self) -> String {
        wait_until("the command has ended", || {
            self.child.try_wait().unwrap().is_some()
        });
        wait_until("all has been read", || self.seen.lock().unwrap().is_closed);
        String::from_utf8(self.seen.lock().unwrap().raw.clone()).unwrap()
    }

    /// Waits for the end of the command. Returns its status, and the text on the screen and above it.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        wait_until("the command has ended", || {
            self.child.try_wait().unwrap().is_some()
        });
        let status = self.child.wait().unwrap();
        wait_until("all has been read", || self.seen.lock().unwrap().is_closed);
        let mut seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen_mut();
        let (rows, _) = screen.size();
        let mut all = String::new();
        screen.set_scrollback(usize::MAX);
        let mut above = screen.scrollback();
        while above > 0 {
            screen.set_scrollback(above);
            let (_, columns) = screen.size();
            all.push_str(&screen.rows(0, columns.get()).next().unwrap_or_default());
            all.push('\n');
            above -= 1;
        }
        screen.set_scrollback(0);
        all.push_str(&screen.contents());
        assert!(rows.get() > 0);
        (status.code(), all)
    }
}
