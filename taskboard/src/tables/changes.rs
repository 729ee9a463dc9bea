//! Writing rows, each with its line of history, in one statement.

use database::Type;

use crate::error::BoardError;

use super::rows::Columns;
use super::visit::Visit;

/// Sets the place from which claims look for work back to the best ready task of `rows`, a part of
/// a statement whose parameter `$1` is the list.
pub(super) fn raise_head(rows: &str) -> String {
    format!(
        "UPDATE @.lists l SET head_priority = r.priority, head_chain = r.chain, head_turn = -r.id \
         FROM (SELECT priority, chain, id FROM {rows} WHERE status = 0 AND owner IS NULL \
         AND open_blockers = 0 AND NOT parked AND NOT internal \
         ORDER BY priority DESC, chain DESC, id LIMIT 1) r WHERE l.id = $1 \
         AND (l.head_priority, l.head_chain, l.head_turn) < (r.priority, r.chain, -r.id)"
    )
}

/// Writes these tasks, new ones and old ones, and what the history says of them.
pub(super) fn write(visit: &Visit<'_>, columns: &Columns) -> Result<(), BoardError> {
    let head = raise_head("given");
    let sql = format!(
        "WITH given AS (SELECT * FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::bigint[], \
            $6::int[], $7::int[], $8::bool[], $9::bool[], $10::bool[], $11::text[], $12::text[], \
            $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::text[], $18::text[]) \
            WITH ORDINALITY AS g(id, status, owner, priority, chain, open_blockers, parked, internal, \
            checks, blocked_by, blocks, lease_agent, lease_run, lease_token, lease_until, body, op, n)), \
         written AS (INSERT INTO @.tasks AS t (list, id, status, owner, priority, chain, open_blockers, \
            parked, internal, checks, blocked_by, blocks, lease_agent, lease_run, lease_token, \
            lease_until, body, since) \
            SELECT $1, id, status, owner, priority, chain, open_blockers, parked, internal, checks, \
            blocked_by::bigint[], blocks::bigint[], lease_agent, lease_run, lease_token, lease_until, \
            body, $19 FROM given \
            ON CONFLICT (list, id) DO UPDATE SET version = t.version + 1, \
            since = CASE WHEN (t.status, t.parked, t.open_blockers, coalesce(t.owner, '')) = \
            (excluded.status, excluded.parked, excluded.open_blockers, coalesce(excluded.owner, '')) \
            THEN t.since ELSE excluded.since END, status = excluded.status, \
            owner = excluded.owner, priority = excluded.priority, chain = excluded.chain, \
            open_blockers = excluded.open_blockers, parked = excluded.parked, \
            internal = excluded.internal, checks = excluded.checks, \
            blocked_by = excluded.blocked_by, blocks = excluded.blocks, \
            lease_agent = excluded.lease_agent, lease_run = excluded.lease_run, \
            lease_token = excluded.lease_token, lease_until = excluded.lease_until, \
            body = excluded.body), \
         head AS ({head}) \
         INSERT INTO @.changes (list, at, op, id, status, owner, blocked_by, blocks, lease_agent, \
            lease_run, lease_token, lease_until, body) \
            SELECT $1, $19, op, id, status, owner, blocked_by::bigint[], blocks::bigint[], \
            lease_agent, lease_run, lease_token, lease_until, body FROM given \
            WHERE op IS NOT NULL ORDER BY n"
    );
    visit.session.execute(
        &sql,
        &[
            (&visit.list, Type::INT4),
            (&columns.ids, Type::INT8_ARRAY),
            (&columns.status, Type::INT2_ARRAY),
            (&columns.owner, Type::TEXT_ARRAY),
            (&columns.priority, Type::INT8_ARRAY),
            (&columns.chain, Type::INT4_ARRAY),
            (&columns.open_blockers, Type::INT4_ARRAY),
            (&columns.parked, Type::BOOL_ARRAY),
            (&columns.internal, Type::BOOL_ARRAY),
            (&columns.checks, Type::BOOL_ARRAY),
            (&columns.blocked_by, Type::TEXT_ARRAY),
            (&columns.blocks, Type::TEXT_ARRAY),
            (&columns.lease_agent, Type::TEXT_ARRAY),
            (&columns.lease_run, Type::TEXT_ARRAY),
            (&columns.lease_token, Type::INT8_ARRAY),
            (&columns.lease_until, Type::INT8_ARRAY),
            (&columns.body, Type::TEXT_ARRAY),
            (&columns.op, Type::TEXT_ARRAY),
            (&visit.now_ms, Type::INT8),
        ],
    )?;
    Ok(())
}
