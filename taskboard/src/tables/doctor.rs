//! Looking for rows that contradict each other.

use database::Type;

use crate::board::Board;
use crate::doctor::{Finding, FindingKind};
use crate::error::BoardError;

use super::changes::raise_head;
use super::rows::{Answered, ids};

/// Tasks whose number of open blockers is not the number of their open blockers.
const WRONG: &str = "SELECT coalesce(array_agg(t.id ORDER BY t.id), '{}') AS ids FROM @.tasks t \
    WHERE t.list = $1 AND t.open_blockers <> (SELECT count(*) FROM @.tasks b WHERE b.list = $1 \
    AND b.id = ANY(t.blocked_by) AND b.status <> 2)";
const RIGHT: &str = "WITH moved AS (UPDATE @.tasks t SET open_blockers = (SELECT count(*) FROM @.tasks b \
    WHERE b.list = $1 AND b.id = ANY(t.blocked_by) AND b.status <> 2) \
    WHERE t.list = $1 AND t.id = ANY($2) RETURNING t.*)";

impl Board {
    /// Looks for trouble, and with `fix` counts again what is counted wrong. Nobody but ccb writes
    /// here, so there is nothing to find unless somebody did, or ccb has a bug.
    pub(crate) fn examine_tables(&self, fix: bool) -> Option<Result<Vec<Finding>, BoardError>> {
        self.options.database.as_ref()?;
        let examine = || {
            if !self.exists() {
                return Ok(Vec::new());
            }
            let snapshot = self.snapshot()?;
            let half = snapshot.half_edges().into_iter().map(|(blocker, dependent)| Finding {
                kind: FindingKind::HalfEdge,
                message: format!(
                    "only one of {blocker} and {dependent} says that {blocker} blocks {dependent}"
                ),
                fixed: None,
            });
            let mut findings: Vec<Finding> = half.collect();
            findings.extend(self.miscounted(fix)?);
            Ok(findings)
        };
        Some(examine())
    }

    fn miscounted(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        let found = self.in_tables(|visit| {
            let session = visit.session;
            let row = session.query_one(WRONG, &[(&visit.list, Type::INT4)])?;
            let wrong: Vec<i64> = session.column(&row, "ids")?;
            if fix && !wrong.is_empty() {
                session.execute(
                    &format!("{RIGHT} {}", raise_head("moved")),
                    &[(&visit.list, Type::INT4), (&wrong, Type::INT8_ARRAY)],
                )?;
            }
            Ok(Answered {
                ids: ids(session, wrong)?,
                ..Answered::default()
            })
        });
        let ids = found.map_or_else(|| Ok(Vec::new()), |answer| answer.map(|it| it.ids))?;
        let finding = |id| Finding {
            kind: FindingKind::Miscounted,
            message: format!("what task {id} waits for is counted wrong"),
            fixed: fix.then(|| "counted again".to_owned()),
        };
        Ok(ids.into_iter().map(finding).collect())
    }
}
