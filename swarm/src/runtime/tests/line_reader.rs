use proptest::prelude::*;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

use crate::runtime::{Line, LineReader};

/// The lines that a reader makes of `writes`, each of which arrives by itself.
fn read(writes: &[Vec<u8>], limit: usize) -> Vec<Line> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (mut sender, receiver) = pipe::pipe().expect("a pipe");
        let mut reader = LineReader::new(receiver, limit);
        let mut lines = Vec::new();
        let write = async move {
            for bytes in writes {
                sender.write_all(bytes).await.expect("a reader");
                tokio::task::yield_now().await;
            }
        };
        let read = async {
            while let Some(line) = reader.next().await.expect("no error") {
                lines.push(line);
            }
        };
        tokio::join!(write, read);
        lines
    })
}

fn whole(text: &str) -> Line {
    Line::Whole(text.as_bytes().to_vec())
}

fn piece(text: &str) -> Line {
    Line::Piece(text.as_bytes().to_vec())
}

#[test]
fn the_edges() {
    let read = |text: &str| read(&[text.as_bytes().to_vec()], 4);
    assert_eq!(read(""), []);
    assert_eq!(read("\n"), [whole("")]);
    assert_eq!(read("a\n\nb\n"), [whole("a"), whole(""), whole("b")]);
    // The last one counts without an end, too.
    assert_eq!(read("a\nb"), [whole("a"), whole("b")]);
    // Nothing is taken away but the end.
    assert_eq!(read("a\r\n"), [whole("a\r")]);
    // The limit itself is not over the limit.
    assert_eq!(read("abcd\nx\n"), [whole("abcd"), whole("x")]);
    assert_eq!(read("abcde\nx\n"), [piece("abcde\n"), whole("x")]);
    assert_eq!(read("abcde"), [piece("abcde")]);
}

#[tokio::test]
async fn a_long_line_comes_in_pieces_as_it_arrives() {
    let (mut sender, receiver) = pipe::pipe().expect("a pipe");
    let mut reader = LineReader::new(receiver, 4);
    for (write, expected) in [
        ("abcdef", piece("abcdef")),
        ("gh", piece("gh")),
        ("\n", piece("\n")),
        ("next\n", whole("next")),
    ] {
        sender.write_all(write.as_bytes()).await.expect("a reader");
        assert_eq!(reader.next().await.expect("no error"), Some(expected));
    }
    drop(sender);
    assert_eq!(reader.next().await.expect("no error"), None);
}

proptest! {
    #[test]
    fn nothing_is_lost_and_only_long_lines_are_cut(
        writes in prop::collection::vec(
            prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), any::<u8>()], 0..40),
            0..12,
        ),
        limit in 0_usize..30,
    ) {
        let input = writes.concat();
        let mut lines = Vec::new();
        let mut printed = Vec::new();
        let mut in_long = false;
        for line in read(&writes, limit) {
            match line {
                Line::Whole(bytes) => {
                    prop_assert!(!in_long, "a whole line within a long one");
                    prop_assert!(bytes.len() <= limit && !bytes.contains(&b'\n'));
                    printed.extend_from_slice(&bytes);
                    printed.push(b'\n');
                    lines.push(bytes);
                }
                Line::Piece(bytes) => {
                    prop_assert!(!bytes.is_empty());
                    in_long = bytes.last() != Some(&b'\n');
                    prop_assert!(!bytes[..bytes.len() - 1].contains(&b'\n'));
                    printed.extend_from_slice(&bytes);
                }
            }
        }
        if printed.len() > input.len() {
            // The end that the last line did not have.
            prop_assert_eq!(printed.pop(), Some(b'\n'));
        }
        prop_assert_eq!(&printed, &input);
        let mut expected: Vec<&[u8]> = input.split(|&byte| byte == b'\n').collect();
        if expected.last().is_some_and(|last| last.is_empty()) {
            expected.pop();
        }
        expected.retain(|line| line.len() <= limit);
        prop_assert_eq!(lines, expected);
    }
}
