use serde::de::DeserializeOwned;

/// The JSON after the last `mark` in `text` that is not itself within such JSON; an error if there
/// are marks but none of them is followed by readable JSON.
pub(crate) fn last_after<T: DeserializeOwned>(
    text: &str,
    mark: &str,
) -> Option<serde_json::Result<T>> {
    let mut found = None;
    let mut rest = text;
    while let Some(at) = rest.find(mark) {
        rest = &rest[at + mark.len()..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<T>();
        match values.next() {
            Some(Ok(value)) => {
                let end = values.byte_offset();
                rest = &rest[end..];
                found = Some(Ok(value));
            }
            Some(Err(error)) if !matches!(found, Some(Ok(_))) => found = Some(Err(error)),
            _ => {}
        }
    }
    found
}
