-- What was done, so that a change whose acknowledgement was lost is not made twice. Old rows are
-- removed: nobody asks after a day.
CREATE TABLE @.operations (
    id uuid PRIMARY KEY,
    answer text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX operations_at ON @.operations USING brin (at);
ALTER TABLE @.operations SET (autovacuum_vacuum_scale_factor = 0.05);

-- What one process on one machine does at a time; whoever renews it has it.
CREATE TABLE @.turns (
    name text PRIMARY KEY,
    holder uuid NOT NULL,
    -- Who that is, for people.
    who text NOT NULL,
    -- What the machine of a worker has that not every machine has.
    labels text[] NOT NULL,
    -- In milliseconds since 1970, by the clock of the database.
    until bigint NOT NULL
);
