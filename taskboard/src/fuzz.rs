//! The fuzz targets of this crate; see [`store::fuzz`].

use std::collections::BTreeMap;

use store::atomic::Stamp;
use store::fuzz::Target;

use crate::facts::{LeaseTerm, decide_check};
use crate::files::index_file::{decode, encode, sealed};
use crate::files::intent::Intent;
use crate::files::log::{any_head, head};
use crate::files::quick;
use crate::files::slot::{
    LONG, decode as decode_slot, encode as encode_slot, sealed as sealed_slot,
};
use crate::format::{parse, to_bytes};
use crate::history::Change;
use crate::id::TaskId;
use crate::own_keys;
use crate::record::Record;
use crate::rules::claim::{self, ClaimRequest};
use crate::rules::index::{Index, Slim};
use crate::task::Task;

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    ("task_file", task_file),
    ("change_log", change_log),
    ("board_index", board_index),
    ("board_slot", board_slot),
    ("board_records", board_records),
];

/// A task's file, as any program may have written it.
fn task_file(data: &[u8]) {
    let Some(id) = TaskId::new(1) else { return };
    let Ok(task) = parse(id, data) else { return };
    let bytes = to_bytes(&task);
    assert_eq!(
        parse(id, &bytes).as_ref(),
        Ok(&task),
        "changed by a rewrite"
    );
    read_facts(&task);
    change(&task, id);
    if let Some(said) = &task.metadata {
        let mut merged = task.clone();
        let allowed = own_keys::checked(said, task.metadata.as_ref()).is_ok();
        decide_check(said);
        assert_eq!(merged.merge_metadata(said).is_ok(), allowed);
    }
}

fn read_facts(task: &Task) {
    let slim = Slim::of(task, 0, Stamp::default());
    assert_eq!(slim.priority, task.priority());
    assert_eq!(slim.parked.as_deref(), task.parked());
    assert!(task.failures() <= task.attempts().len());
    let result = task.result();
    assert!(result.is_none() || task.result_fingerprint().is_some());
    if let Some(result) = result {
        let mut noted = task.clone();
        noted.set_result(Some(&result));
        assert_eq!(noted.result(), Some(result));
    }
    let checked = task.verify_command().is_some();
    assert!(!checked || slim.checks && task.is_judged());
    assert!(checked || !task.is_reported());
    drop((task.needs(), task.paths()));
    assert!(!task.is_disputed() || task.parked().is_some());
}

/// A claim with a lease, and its end.
fn change(task: &Task, id: TaskId) {
    let Ok(agent) = store::name::Name::new("agent", "a") else {
        return;
    };
    let request = ClaimRequest {
        lease: Some(LeaseTerm::Milliseconds(i64::MAX)),
        ..ClaimRequest::new(agent.as_str())
    };
    let mut claimed = task.clone();
    claim::start(&mut claimed, &request, 1);
    let token = claimed.lease().map(|lease| lease.token);
    assert!(
        token > Some(task.last_token()),
        "a lease's number must grow"
    );
    assert_eq!(parse(id, &to_bytes(&claimed)).as_ref(), Ok(&claimed));
    claimed.make_pending();
    assert_eq!(Some(claimed.last_token()), token);
}

/// The history of a board, which every process follows.
fn change_log(data: &[u8]) {
    let mut index = Index::default();
    let mut last = 0;
    for line in data.split(|byte| *byte == b'\n') {
        let (quick, real) = (quick::head(line), any_head(line));
        if let (Some(quick), Some(real)) = (&quick, &real) {
            assert_eq!(quick, real);
        }
        if let Ok(change) = serde_json::from_slice::<Change>(line) {
            assert_eq!(change.to_json()["seq"], change.seq);
        }
        if let Some(head) = head(line) {
            last = head.seq.max(last);
            match head.slim {
                Some(slim) => index.put(head.id, slim),
                None => index.remove(head.id),
            }
        }
    }
    assert!(last.checked_add(data.len() as u64 + 1).is_some());
    let tasks: Vec<(TaskId, Slim)> = index.iter().map(|(id, slim)| (id, slim.clone())).collect();
    let whole = Index::build(tasks, BTreeMap::new());
    assert_eq!(whole.half_edges(), index.half_edges());
}

/// The index beside a board, damaged but with the right checksum.
fn board_index(data: &[u8]) {
    decode(data);
    let Some((index, at)) = decode(&sealed(data)) else {
        return;
    };
    let bytes = encode(&index, at);
    let again = decode(&bytes);
    assert!(again.is_some(), "an index that was read cannot be written");
    let Some((again, position)) = again else {
        return;
    };
    assert_eq!((position, again.len()), (at, index.len()));
    assert!(index.iter().eq(again.iter()), "changed by a rewrite");
    assert_eq!(again.unreadable(), index.unreadable());
    assert!(encode(&again, at) == bytes);
}

/// A worker's line, damaged but with the right checksum.
fn board_slot(data: &[u8]) {
    decode_slot(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(slot) = decode_slot(sealed_slot(text).as_bytes()) else {
        return;
    };
    if let Some(line) = encode_slot(&slot) {
        assert!(line.len() < LONG);
        assert_eq!(decode_slot(line.as_bytes()), Some(slot));
    }
}

/// The records beside the tasks, and unfinished changes.
fn board_records(data: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<Record>(data) {
        let bytes = serde_json::to_vec(&record).unwrap_or_default();
        let again = serde_json::from_slice(&bytes).ok();
        assert_eq!(again, Some(record));
    }
    if let Ok(intent) = serde_json::from_slice::<Intent>(data) {
        assert!(intent.steps.iter().all(|step| step.id().get() > 0));
    }
}
