//! A leaderboard: the best players and a player's rank, from a second map that is ordered by score.
//!
//! `cargo run -p wollemi --features derive --example leaderboard`

use std::error::Error;
use wollemi::{Db, Key, TypedMap};

/// Ordered by score, then by name.
#[derive(Clone, Debug, PartialEq, Key)]
struct Place {
    score: u32,
    player: String,
}

struct Board {
    db: Db,
    scores: TypedMap<String, u32>,
    places: TypedMap<Place, ()>,
}

impl Board {
    fn open(db: Db) -> Result<Board, wollemi::Error> {
        Ok(Board {
            scores: TypedMap::new(db.map("scores")?),
            places: TypedMap::new(db.map("places")?),
            db,
        })
    }

    /// Adds to a player's score and returns the new score. Updates of different players rarely wait for each other:
    /// only if two of their keys have the same hash, or if 16 commits are in progress.
    fn add(&self, player: &str, points: u32) -> Result<u32, wollemi::Error> {
        self.db.transact(|tx| {
            let player = player.to_owned();
            let old = self.scores.get_in(tx, &player)?;
            if let Some(score) = old {
                let place = Place {
                    score,
                    player: player.clone(),
                };
                self.places.remove_in(tx, &place)?;
            }
            let score = old.unwrap_or(0) + points;
            self.scores.upsert_in(tx, &player, &score)?;
            self.places.upsert_in(tx, &Place { score, player }, &())?;
            Ok(score)
        })
    }

    /// Returns the best players, best first.
    fn top(&self, count: usize) -> Result<Vec<Place>, wollemi::Error> {
        self.places
            .iter()
            .rev()
            .take(count)
            .map(|entry| Ok(entry?.0))
            .collect()
    }

    /// Returns a player's rank, from 1; `None` for a player without a score. Walks the better players.
    fn rank(&self, player: &str) -> Result<Option<usize>, wollemi::Error> {
        let Some(score) = self.scores.get(player)? else {
            return Ok(None);
        };
        let Some(above) = score.checked_add(1) else {
            return Ok(Some(1));
        };
        let better = Place {
            score: above,
            player: String::new(),
        };
        Ok(Some(self.places.range(better..).count() + 1))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let board = Board::open(Db::anonymous()?)?;
    std::thread::scope(|scope| {
        let threads = [3u32, 5, 7].map(|step| {
            let board = &board;
            scope.spawn(move || {
                (0..300u32)
                    .try_for_each(|i| board.add(&format!("player {:02}", i * step % 50), step).map(drop))
            })
        });
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no panic"))
    })?;

    for (i, Place { score, player }) in board.top(3)?.iter().enumerate() {
        println!("{}. {player}: {score}", i + 1);
    }
    let best = &board.top(1)?[0];
    assert_eq!(board.rank(&best.player)?, Some(1));
    assert_eq!(board.rank("nobody")?, None);
    // The index of places agrees with the scores.
    let sum = |scores: &mut dyn Iterator<Item = Result<u32, wollemi::Error>>| scores.sum::<Result<u32, _>>();
    let by_place = sum(&mut board.places.iter().map(|entry| Ok(entry?.0.score)))?;
    assert_eq!(by_place, sum(&mut board.scores.iter().map(|entry| Ok(entry?.1)))?);
    assert_eq!(by_place, 300 * (3 + 5 + 7));
    Ok(())
}

#[cfg(test)]
mod tests {
    /// Runs the example, whose assertions check it.
    #[test]
    fn runs() {
        super::main().expect("it runs");
    }
}
