// A Kalah bot to start from.  Make choose_pit and wants_to_swap cleverer; the rest can stay as it is.
//
// Both get the two halves of the board: own and other hold the seeds in the pits and, as the last number, in the
// store.  own[0] is our pit 1, the furthest from our store; opposite of own[i] lies other[pits - 1 - i].

use std::io::{self, BufRead, Write};

/// The pit to empty; pit 1 is own[0].  This is the place for your ideas.
fn choose_pit(own: &[usize], other: &[usize]) -> usize {
    let pits = own.len() - 1;
    // 1. A last seed in our store gives another turn: take one, the pit nearest to the store first.
    if let Some(i) = (0..pits)
        .rev()
        .find(|&i| own[i] > 0 && last_seed(own, i) == pits)
    {
        return i + 1;
    }
    // 2. Else capture as many seeds as we can; 3. else empty the fullest pit, the nearest of equal ones.
    let full = (0..pits).filter(|&i| own[i] > 0);
    let best = full.max_by_key(|&i| worth(own, other, i)); // the last of equal ones
    best.expect("we are only asked when we have seeds") + 1
}

/// Whether to take the opponent's side, as our answer to its first move (the pie rule).  The opponent would move
/// next, from our side.  So we swap if it is ahead and our side has no extra turn.
fn wants_to_swap(own: &[usize], other: &[usize]) -> bool {
    let pits = own.len() - 1;
    let extra_turn = (0..pits).any(|i| own[i] > 0 && last_seed(own, i) == pits);
    other[pits] > own[pits] && !extra_turn
}

/// The value of emptying own[i]: a capture counts far more than the seeds of a full pit.
fn worth(own: &[usize], other: &[usize], i: usize) -> usize {
    1000 * captured(own, other, i) + own[i]
}

/// The index of the last seed of own[i]: from 0 our pits, then our store, then the other's pits.
fn last_seed(own: &[usize], i: usize) -> usize {
    (i + own[i]) % (2 * own.len() - 1) // the other's store is left out
}

/// The seeds that own[i] captures: our last one and all opposite, if it falls in an empty pit.
fn captured(own: &[usize], other: &[usize], i: usize) -> usize {
    let pits = own.len() - 1;
    let last = last_seed(own, i);
    if last >= pits || own[i] > 2 * pits + 1 || (own[last] > 0 && last != i) {
        return 0;
    }
    let lapped = i + own[i] > 2 * pits; // then every pit of the other got a seed on the way
    let opposite = other[pits - 1 - last] + usize::from(lapped);
    if opposite > 0 {
        opposite + 1
    } else {
        0
    }
}

fn numbers(text: &str) -> Vec<usize> {
    text.split(',')
        .map(|word| word.parse().expect("a number"))
        .collect()
}

/// The board of the start, all pits full, from a game's name such as "manchester" or "kalah(6,4)".
fn start_board(game: &str) -> Vec<usize> {
    let mut size = if game.starts_with("bga") {
        vec![6, 4]
    } else {
        vec![7, 7]
    };
    if let (Some(open), Some(close)) = (game.find('('), game.find(')')) {
        size = numbers(&game[open + 1..close]);
    }
    let mut half = vec![size[1]; size[0]];
    half.push(0); // the store
    half.repeat(2)
}

/// The conversation with the referee: read a line, and answer when it is our turn.
fn main() -> io::Result<()> {
    let game = std::env::var("KALARENA_GAME").unwrap_or_else(|_| String::from("manchester"));
    let pie_rule =
        (game.contains("+pie") || game.starts_with("manchester")) && !game.contains("+pie=no");
    let opening = std::env::var("KALARENA_OPENING").is_ok(); // some moves are made before the first turn
    let (mut seat, mut board) = (String::new(), start_board(&game));
    let (mut my_turn, mut may_swap) = (false, false);
    for line in io::stdin().lock().lines() {
        let line = line?;
        let fields: Vec<&str> = line.split(';').collect();
        match fields[0] {
            // START;South moves first, START;North second
            "START" => {
                seat = fields[1].to_string();
                my_turn = seat == "South" && !opening;
                may_swap = seat == "North" && !opening && pie_rule;
            }
            // CHANGE;<move>;<board>;<YOU, OPP or END>
            "CHANGE" => {
                if fields[1] == "SWAP" {
                    // the opponent took our seat, so we have the other one
                    seat = String::from(if seat == "South" { "North" } else { "South" });
                }
                board = numbers(fields[2]);
                my_turn = fields[3] == "YOU";
            }
            "END" => break,
            _ => continue, // TIME, which only bots that ask for it in bot.toml are told
        }
        if !my_turn {
            continue;
        }
        let (north, south) = board.split_at(board.len() / 2);
        let (own, other) = if seat == "North" {
            (north, south)
        } else {
            (south, north)
        };
        let reply = if may_swap && wants_to_swap(own, other) {
            seat = String::from("South");
            String::from("SWAP")
        } else {
            format!("MOVE;{}", choose_pit(own, other))
        };
        may_swap = false; // only our very first answer may be SWAP
        eprintln!("{seat}: own {own:?}, other {other:?}: {reply}"); // only you get to see this
        println!("{reply}");
        io::stdout().flush()?; // so that the referee sees it, however Rust buffers
    }
    Ok(())
}
