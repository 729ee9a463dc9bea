//! Looking for rows that contradict each other.

use database::Type;

use crate::backend::Backend;
use crate::error::BoardError;
use crate::finding::{Finding, FindingKind};

use super::Tables;
use super::changes::raise_head;
use super::rows::{Answered, ids};

/// Tasks whose number of open blockers is not the number of their open blockers.
const WRONG: &str = "SELECT coalesce(array_agg(t.id ORDER BY t.id), '{}') AS ids FROM @.tasks t \
    WHERE t.list = $1 AND t.open_blockers <> (SELECT count(*) FROM @.tasks b WHERE b.list = $1 \
    AND b.id = ANY(t.blocked_by) AND b.status <> 2)";
const RIGHT: &str = "WITH moved AS (UPDATE @.tasks t SET open_blockers = (SELECT count(*) FROM @.tasks b \
    WHERE b.list = $1 AND b.id = ANY(t.blocked_by) AND b.status <> 2) \
    WHERE t.list = $1 AND t.id = ANY($2) RETURNING t.*)";

impl Tables {
    /// Searches for damage, and with `fix` corrects wrong counts. Only ccb writes here, so there is
    /// nothing to find unless another program wrote, or ccb has a bug.
    pub(super) fn examine(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        if !self.exists() {
            return Ok(Vec::new());
        }
        let half = self.snapshot()?.half_edges().into_iter();
        let half = half.map(|(blocker, dependent)| Finding {
            kind: FindingKind::HalfEdge,
            message: format!(
                "only one of {blocker} and {dependent} says that {blocker} blocks {dependent}"
            ),
            fixed: None,
        });
        let mut findings: Vec<Finding> = half.collect();
        findings.extend(self.miscounted(fix)?);
        Ok(findings)
    }

    fn miscounted(&self, fix: bool) -> Result<Vec<Finding>, BoardError> {
        let found = self.change(|visit| {
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
        })?;
        let finding = |id| Finding {
            kind: FindingKind::Miscounted,
            message: format!("what task {id} waits for is counted wrong"),
            fixed: fix.then(|| "counted again".to_owned()),
        };
        Ok(found.ids.into_iter().map(finding).collect())
    }
}
