//! A command's output: its beginning and its end.

/// Bytes of the beginning and of the end that are kept, each.
const HALF: usize = 15 * 1024;

/// Output of any length in a bounded place.
#[derive(Debug, Default)]
pub(super) struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Bytes between them that are gone.
    lost: u64,
}

impl Captured {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = HALF - self.head.len().min(HALF);
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.extend_from_slice(rest);
        // Not at every piece: moving what is kept takes time.
        if self.tail.len() > 4 * HALF {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..surplus);
        self.lost += surplus as u64;
    }

    /// The output as text; empties this.
    pub(super) fn take(&mut self) -> String {
        let mut taken = std::mem::take(self);
        taken.trim();
        if taken.lost == 0 {
            taken.head.append(&mut taken.tail);
            return String::from_utf8_lossy(&taken.head).into_owned();
        }
        let head = String::from_utf8_lossy(&taken.head);
        let tail = String::from_utf8_lossy(&taken.tail);
        let (head, tail) = (
            head.trim_end_matches('\u{fffd}'),
            tail.trim_start_matches('\u{fffd}'),
        );
        format!("{head}\n[… {} bytes left out …]\n{tail}", taken.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_long_output_are_kept_in_bounded_memory() {
        let mut captured = Captured::default();
        captured.push(b"first ");
        captured.push("é".as_bytes());
        assert_eq!(captured.take(), "first é");
        captured.push(b"start");
        for _ in 0..1000 {
            captured.push(&[b'x'; 64 * 1024]);
            assert!(captured.tail.len() <= 4 * HALF + 64 * 1024);
        }
        captured.push(b"end");
        let text = captured.take();
        assert!(text.starts_with("startxx") && text.ends_with("xxend"));
        let lost = 5 + 1000 * 64 * 1024 + 3 - 2 * HALF;
        assert!(text.contains(&format!("[… {lost} bytes left out …]")));
        assert_eq!(captured.take(), "");
    }
}
