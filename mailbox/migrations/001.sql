-- Mail. Names of teams and inboxes are in lower case; times are milliseconds since 1970 by the
-- clock of the database.

-- The only clock that counts.
CREATE FUNCTION @.mail_now() RETURNS bigint LANGUAGE sql VOLATILE AS
    $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Where counting a team's broadcasts goes on. Locked by whoever sends one.
CREATE TABLE @.mail_teams (
    team text PRIMARY KEY,
    last_broadcast bigint NOT NULL
);

-- Locked by whoever numbers a message in it, or reads it.
CREATE TABLE @.mail_inboxes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    team text NOT NULL,
    name text NOT NULL,
    last_seq bigint NOT NULL DEFAULT 0,
    -- The length of all messages there ever were, and of those that are acknowledged.
    bytes bigint NOT NULL DEFAULT 0,
    acked_bytes bigint NOT NULL DEFAULT 0,
    acked bigint NOT NULL DEFAULT 0,
    -- How far it was read, as `cursor.json` says it; counts how often it was written, so that a
    -- write that comes late changes nothing.
    cursor text,
    cursor_version bigint NOT NULL DEFAULT 0,
    -- Who reads it: until when that holds, and the connection it stands and falls with.
    reader uuid,
    reader_who text,
    reader_backend integer,
    reader_until bigint,
    -- Whether the agent has something to do, and how often it began to.
    busy boolean NOT NULL DEFAULT true,
    busy_times bigint NOT NULL DEFAULT 1,
    UNIQUE (team, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05);

-- `line` is the line that the same message would be in a log. Text and not JSON: a NUL in
-- somebody's words is allowed there, and is not in the JSON types.
CREATE TABLE @.mail_messages (
    inbox bigint NOT NULL REFERENCES @.mail_inboxes ON DELETE CASCADE,
    seq bigint NOT NULL,
    -- The length of all messages of the inbox up to this one.
    bytes bigint NOT NULL,
    line text NOT NULL,
    -- When it was sent.
    at bigint NOT NULL DEFAULT @.mail_now(),
    PRIMARY KEY (inbox, seq)
);
-- For prune alone.
CREATE INDEX mail_messages_at ON @.mail_messages USING brin (at);

-- Ids that were given by senders, also of messages that are gone.
CREATE TABLE @.mail_ids (
    inbox bigint NOT NULL REFERENCES @.mail_inboxes ON DELETE CASCADE,
    id uuid NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (inbox, id)
);
CREATE INDEX mail_ids_seq ON @.mail_ids (inbox, seq);

-- `request` is what the file of the same request would hold.
CREATE TABLE @.mail_requests (
    id uuid PRIMARY KEY,
    team text NOT NULL,
    created bigint NOT NULL,
    deadline bigint NOT NULL,
    -- It waits for its answer.
    waits boolean NOT NULL,
    -- Somebody has not been told yet.
    untold boolean NOT NULL,
    request text NOT NULL
);
CREATE INDEX mail_requests_created ON @.mail_requests (team, created);
