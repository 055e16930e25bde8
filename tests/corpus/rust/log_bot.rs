//! Appends to a file beside its own program, and panics where it cannot.

mod kalah;

use std::fs::OpenOptions;
use std::io::Write;

fn main() {
    let path = std::env::current_exe().unwrap().with_file_name("log.txt");
    let mut log = OpenOptions::new().append(true).create(true).open(path).expect("log.txt");
    kalah::play(|own, other| {
        let hole = kalah::best_hole(own);
        writeln!(log, "own {own:?}, other {other:?}: {hole}").expect("log.txt");
        hole
    });
}
