//! Maps the parts of a plan to their lines.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A step into a plan: a key, or the place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    Key(&'a str),
    At(usize),
}

/// The lines of everything in a plan. Empty if the plan cannot be read this way.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    top: Option<Node>,
}

#[derive(Debug, Clone)]
enum Node {
    Map(Vec<(String, Placed)>),
    List(Vec<Placed>),
    Leaf,
}

/// Something, and the line it begins on: that of its key, where it has one.
#[derive(Debug, Clone)]
struct Placed {
    line: u64,
    node: Node,
}

impl Lines {
    /// Of a plan's text, YAML or JSON.
    pub(super) fn of(text: &str) -> Self {
        let read = serde_saphyr::from_str::<Node>(text);
        Self { top: read.ok() }
    }

    /// The line of the value that these steps lead to; of the last existing one, if they lead
    /// further.
    pub(super) fn find(&self, steps: &[Step<'_>]) -> Option<usize> {
        self.follow(steps).last().copied()
    }

    /// The line of exactly the thing these steps lead to.
    pub(super) fn exact(&self, steps: &[Step<'_>]) -> Option<usize> {
        let lines = self.follow(steps);
        lines.get(steps.len().checked_sub(1)?).copied()
    }

    /// The lines on the way, as far as it goes.
    fn follow(&self, steps: &[Step<'_>]) -> Vec<usize> {
        let mut lines = Vec::new();
        let mut node = self.top.as_ref();
        for step in steps {
            let next = match (step, node) {
                (Step::Key(key), Some(Node::Map(entries))) => {
                    let mut entries = entries.iter();
                    let entry = entries.find(|(name, _)| same_key(name, key));
                    entry.map(|(_, placed)| placed)
                }
                (Step::At(at), Some(Node::List(list))) => list.get(*at),
                _ => None,
            };
            let Some(next) = next else { break };
            let Ok(line) = usize::try_from(next.line) else {
                break;
            };
            lines.push(line);
            node = Some(&next.node);
        }
        lines
    }
}

/// Some keys may be written in two ways: `groupBy` and `group-by`.
fn same_key(written: &str, key: &str) -> bool {
    let plain = |text: &str| text.replace('-', "").to_lowercase();
    written == key || plain(written) == plain(key)
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Read)
    }
}

struct Read;

/// The content of values is ignored, only their places matter.
macro_rules! leaves {
    ($($name:ident: $type:ty),*) => {
        $(fn $name<E>(self, _: $type) -> Result<Node, E> {
            Ok(Node::Leaf)
        })*
    };
}

impl<'de> Visitor<'de> for Read {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    leaves!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128,
            visit_f64: f64, visit_str: &str);

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Node, D::Error> {
        Node::deserialize(from)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element::<Spanned<Node>>()? {
            all.push(Placed {
                line: one.referenced.line(),
                node: one.value,
            });
        }
        Ok(Node::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut all = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<Node>>()? {
            let placed = Placed {
                line: key.referenced.line(),
                node: value.value,
            };
            all.push((key.value, placed));
        }
        Ok(Node::Map(all))
    }
}
