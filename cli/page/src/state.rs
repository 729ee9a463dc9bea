//! The state that browsers know: named pieces of JSON, each with the number of its last change.
//!
//! A browser that has seen everything up to a number gets the pieces that changed after it. So a
//! browser that comes back after an hour misses nothing, and the server remembers nothing about it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use observe::live::Scene;
use tokio::sync::watch;

use super::pieces::Change;

/// Maximum number of remembered names of removed pieces.
const GONE: usize = 20_000;

/// All pieces, for any number of browsers.
#[derive(Debug)]
pub(super) struct State {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    /// Identifies this server: the numbers of an earlier one mean nothing here.
    epoch: String,
    seq: u64,
    pieces: HashMap<String, Piece>,
    gone: usize,
    scene: Arc<Scene>,
}

#[derive(Debug)]
struct Piece {
    seq: u64,
    /// `None` if the piece was removed.
    json: Option<Arc<str>>,
}

/// An update for a browser.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Update {
    /// The browser's state after the update.
    pub(super) seen: Seen,
    /// One JSON document.
    pub(super) json: String,
}

/// The last change that a browser knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    epoch: String,
    seq: u64,
}

impl Seen {
    /// Parses the form in which a browser sends it when it comes back (`Last-Event-ID`).
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (epoch, seq) = text.split_once('.')?;
        Some(Self {
            epoch: epoch.to_owned(),
            seq: seq.parse().ok()?,
        })
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.epoch, self.seq)
    }
}

impl State {
    pub(super) fn new(epoch: &str) -> Self {
        let inner = Inner {
            epoch: epoch.to_owned(),
            seq: 0,
            pieces: HashMap::new(),
            gone: 0,
            scene: Arc::default(),
        };
        Self {
            inner: Mutex::new(inner),
            changed: watch::channel(0).0,
        }
    }

    /// A receiver that notices changes.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Number of listening browsers.
    pub(super) fn listeners(&self) -> usize {
        self.changed.receiver_count()
    }

    /// The scene that the pieces were made from.
    pub(super) fn scene(&self) -> Arc<Scene> {
        Arc::clone(&self.lock().scene)
    }

    /// Stores a new scene and the pieces that may have changed with it.
    pub(super) fn put(&self, changes: Vec<Change>, scene: Scene) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        inner.scene = Arc::new(scene);
        let seq = inner.seq + 1;
        let mut changed = false;
        for (name, json) in changes {
            match inner.pieces.get_mut(&name) {
                Some(piece) if piece.json.as_deref() == json.as_deref() => {}
                Some(piece) => {
                    inner.gone -= usize::from(piece.json.is_none());
                    inner.gone += usize::from(json.is_none());
                    (piece.seq, piece.json) = (seq, json.map(Into::into));
                    changed = true;
                }
                None if json.is_none() => {}
                None => {
                    let json = json.map(Into::into);
                    inner.pieces.insert(name, Piece { seq, json });
                    changed = true;
                }
            }
        }
        if inner.gone > GONE {
            // Browsers that know these names get everything again.
            inner.pieces.retain(|_, piece| piece.json.is_some());
            inner.gone = 0;
            inner.epoch.push('x');
        }
        if changed {
            inner.seq = seq;
            self.changed.send_replace(seq);
        }
    }

    /// The update for a browser that has seen this much; `None` if nothing changed.
    pub(super) fn since(&self, seen: Option<&Seen>) -> Option<Update> {
        let inner = self.lock();
        let seen = seen.filter(|seen| seen.epoch == inner.epoch && seen.seq <= inner.seq);
        let after = seen.map(|seen| seen.seq);
        if after == Some(inner.seq) {
            return None;
        }
        let mut new: Vec<(&String, Option<Arc<str>>)> = inner
            .pieces
            .iter()
            .filter(|(_, piece)| after.is_none_or(|after| piece.seq > after))
            .filter(|(_, piece)| after.is_some() || piece.json.is_some())
            .map(|(name, piece)| (name, piece.json.clone()))
            .collect();
        new.sort_by(|a, b| a.0.cmp(b.0));
        let mut json = format!("{{\"reset\":{},\"set\":{{", after.is_none());
        let mut gone = Vec::new();
        let mut first = true;
        for (name, piece) in new {
            let Some(piece) = piece else {
                gone.push(name);
                continue;
            };
            if !std::mem::take(&mut first) {
                json.push(',');
            }
            json.push_str(&quoted(name));
            json.push(':');
            json.push_str(&piece);
        }
        let gone: Vec<String> = gone.into_iter().map(|name| quoted(name)).collect();
        json.push_str(&format!("}},\"gone\":[{}]}}", gone.join(",")));
        Some(Update {
            seen: Seen {
                epoch: inner.epoch.clone(),
                seq: inner.seq,
            },
            json,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Stores exactly these pieces.
    fn put(state: &State, of: &[(&str, u32)]) {
        let there = |name: &String| of.iter().any(|(one, _)| one == name);
        let known: Vec<String> = state.lock().pieces.keys().cloned().collect();
        let gone = known.into_iter().filter(|name| !there(name));
        let gone = gone.map(|name| (name, None));
        let each = of
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some(value.to_string())));
        state.put(each.chain(gone).collect(), Scene::default());
    }

    fn read(update: Option<Update>) -> (Seen, Value) {
        let update = update.expect("something new");
        (update.seen, serde_json::from_str(&update.json).unwrap())
    }

    #[test]
    fn who_comes_back_is_told_what_changed_and_nothing_else() {
        let state = State::new("e");
        put(&state, &[("a", 1), ("b", 1)]);
        let (first, all) = read(state.since(None));
        assert_eq!(
            all,
            json!({"reset": true, "set": {"a": 1, "b": 1}, "gone": []})
        );
        assert_eq!(state.since(Some(&first)), None);
        put(&state, &[("a", 1), ("b", 2), ("c", 3)]);
        put(&state, &[("b", 2), ("c", 4)]);
        put(&state, &[("b", 2), ("c", 4)]);
        let (second, new) = read(state.since(Some(&first)));
        assert_eq!(
            new,
            json!({"reset": false, "set": {"b": 2, "c": 4}, "gone": ["a"]})
        );
        assert_eq!(state.since(Some(&second)), None);
        // A removed piece that comes again is new.
        put(&state, &[("a", 1), ("b", 2), ("c", 4)]);
        let (_, new) = read(state.since(Some(&second)));
        assert_eq!(new, json!({"reset": false, "set": {"a": 1}, "gone": []}));
    }

    #[test]
    fn numbers_of_another_server_or_of_the_future_mean_nothing() {
        let state = State::new("e");
        put(&state, &[("a", 1)]);
        for seen in ["other.1", "e.99"] {
            let (_, all) = read(state.since(Seen::parse(seen).as_ref()));
            assert_eq!(all["reset"], true, "{seen}");
        }
        assert_eq!(Seen::parse("nonsense"), None);
        assert_eq!(Seen::parse("e.x"), None);
        let text = Seen::parse("e.7").unwrap().to_string();
        assert_eq!(text, "e.7");
    }

    #[test]
    fn pieces_that_are_gone_do_not_pile_up() {
        let state = State::new("e");
        let (seen, _) = {
            put(&state, &[("a", 1)]);
            read(state.since(None))
        };
        let many = (0..=GONE).map(|n| (format!("n{n}"), Some("1".into())));
        state.put(many.collect(), Scene::default());
        put(&state, &[("a", 1)]);
        assert!(state.lock().pieces.len() < 10);
        let (_, all) = read(state.since(Some(&seen)));
        assert_eq!(all["reset"], true);
    }
}
