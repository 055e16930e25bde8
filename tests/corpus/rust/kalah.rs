//! A small player of the Manchester protocol, a module of each Rust bot of the corpus.

use std::io::{self, BufRead, Write};

const OPENING_HOLE: usize = 3;

/// Return a hole with an extra turn if there is one, else the fullest hole; `own` ends with our store.
pub fn best_hole(own: &[usize]) -> usize {
    let pits = own.len() - 1;
    let extra = (0..pits).find(|&i| own[i] > 0 && i + own[i] == pits);
    extra.unwrap_or_else(|| (0..pits).max_by_key(|&i| own[i]).unwrap()) + 1
}

fn send(line: &str) {
    let mut output = io::stdout().lock();
    writeln!(output, "{line}").expect("the referee is gone");
    output.flush().expect("the referee is gone");
}

pub fn play(mut choose: impl FnMut(&[usize], &[usize]) -> usize) {
    let (mut seat, mut may_swap) = (String::new(), false);
    for line in io::stdin().lock().lines().map(|line| line.expect("no UTF-8")) {
        let fields: Vec<&str> = line.split(';').collect();
        match fields[..] {
            ["START", told] => {
                seat = told.to_string();
                may_swap = seat == "North";
                if !may_swap {
                    send(&format!("MOVE;{OPENING_HOLE}"));
                }
            }
            ["CHANGE", hole, state, turn] => {
                if hole == "SWAP" {
                    seat = "North".to_string();
                }
                if turn != "YOU" {
                    continue;
                }
                let board: Vec<usize> = state.split(',').map(|text| text.parse().unwrap()).collect();
                let (north, south) = board.split_at(board.len() / 2);
                if may_swap && hole.parse::<usize>().unwrap() % 2 == 0 {
                    seat = "South".to_string();
                    send("SWAP");
                } else {
                    let (own, other) = if seat == "North" { (north, south) } else { (south, north) };
                    send(&format!("MOVE;{}", choose(own, other)));
                }
                may_swap = false;
            }
            _ => return,
        }
    }
}
