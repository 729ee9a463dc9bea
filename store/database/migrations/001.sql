-- What was done, so that a change whose acknowledgement was lost is not made twice. Old rows are
-- removed: nobody asks after a day.
CREATE TABLE @.operations (
    id uuid PRIMARY KEY,
    answer text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX operations_at ON @.operations USING brin (at);
ALTER TABLE @.operations SET (autovacuum_vacuum_scale_factor = 0.05);
