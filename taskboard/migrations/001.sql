-- The board. A task is a row: what decides about it are columns, the rest is JSON as text, in which
-- unknown keys and the order of keys survive. `@.` stands for the schema.

-- The only clock leases are measured with, in milliseconds since 1970. Tests put another in its place.
CREATE FUNCTION @.clock_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

CREATE TABLE @.lists (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    -- The highest id ever given out. Only grows.
    high_water bigint NOT NULL DEFAULT 0,
    -- The number of the last change that has one.
    last_change bigint NOT NULL DEFAULT 0,
    -- Changes up to this number are gone.
    forgotten bigint NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX lists_name ON @.lists (lower(name));

CREATE TABLE @.tasks (
    list integer NOT NULL,
    id bigint NOT NULL,
    -- Grows with every change but the renewal of a lease.
    version bigint NOT NULL DEFAULT 1,
    -- 0 pending, 1 in progress, 2 completed
    status smallint NOT NULL,
    owner text,
    priority bigint NOT NULL,
    -- The longest chain of open tasks that starts with it; of no meaning once it is completed.
    chain integer NOT NULL,
    -- How many of blocked_by are not completed.
    open_blockers integer NOT NULL,
    parked boolean NOT NULL,
    internal boolean NOT NULL,
    checks boolean NOT NULL,
    blocked_by bigint[] NOT NULL,
    blocks bigint[] NOT NULL,
    lease_agent text,
    lease_run text,
    -- The last one given out; stays when the lease ends.
    lease_token bigint NOT NULL,
    -- By clock_ms().
    lease_until bigint,
    body text NOT NULL,
    PRIMARY KEY (list, id)
);
-- Claims leave dead entries at the head of tasks_ready; they must go soon, or every claim walks
-- over them.
ALTER TABLE @.tasks SET (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000
);
-- Every open task that is not internal is in exactly one of the three, so that a claim moves a row
-- from one to another, and whether anything is left to do is three short looks.
CREATE INDEX tasks_ready ON @.tasks (list, priority DESC, chain DESC, id)
    WHERE status = 0 AND owner IS NULL AND open_blockers = 0 AND NOT parked AND NOT internal;
CREATE INDEX tasks_held ON @.tasks (list, owner) WHERE status = 1 OR (status = 0 AND owner IS NOT NULL);
CREATE INDEX tasks_waiting ON @.tasks (list)
    WHERE status = 0 AND owner IS NULL AND (open_blockers > 0 OR parked) AND NOT internal;
CREATE INDEX tasks_lease_end ON @.tasks (list, lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_run ON @.tasks (list, lease_run) WHERE lease_run IS NOT NULL;

-- What was done, in the order of `ordinal` for every single task. A claim must not wait for others
-- to be numbered, so a change is written without its number and gets it from the first who looks
-- (number_changes), without gaps.
CREATE TABLE @.changes (
    ordinal bigint GENERATED ALWAYS AS IDENTITY (CACHE 1) PRIMARY KEY,
    list integer NOT NULL,
    seq bigint,
    at bigint NOT NULL,
    op text NOT NULL,
    id bigint NOT NULL,
    -- The task afterwards; all of it null when it was deleted.
    status smallint,
    owner text,
    blocked_by bigint[],
    blocks bigint[],
    lease_agent text,
    lease_run text,
    lease_token bigint,
    lease_until bigint,
    body text
);
CREATE UNIQUE INDEX changes_seq ON @.changes (list, seq) WHERE seq IS NOT NULL;
CREATE INDEX changes_unnumbered ON @.changes (list, ordinal) WHERE seq IS NULL;
ALTER TABLE @.changes SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Whoever changes more than one task, or what others wait for, has the list for himself; claims
-- share it with each other, and tell the tasks apart by their rows' locks.
CREATE FUNCTION @.lock_list(p_list integer) RETURNS void LANGUAGE sql AS
    'SELECT pg_advisory_xact_lock(hashtext(''@.''), p_list)';

-- Begins a change: makes the list if need be, takes its lock, and says what time it is. `exact` is
-- the list's name as it is written.
CREATE FUNCTION @.enter(p_name text, OUT list integer, OUT exact text, OUT now_ms bigint, OUT expired boolean)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT l.id, l.name INTO list, exact FROM @.lists l WHERE lower(l.name) = lower(p_name);
    IF NOT FOUND THEN
        INSERT INTO @.lists (name) VALUES (p_name) ON CONFLICT DO NOTHING;
        SELECT l.id, l.name INTO STRICT list, exact FROM @.lists l WHERE lower(l.name) = lower(p_name);
    END IF;
    PERFORM @.lock_list(list);
    now_ms := @.clock_ms();
    expired := EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = enter.list AND t.lease_until <= enter.now_ms);
END $$;

-- Gives numbers to the changes that have none, in an order in which they may have happened: what
-- was done to one task is in its order, because whoever did it held the row. Returns the last number.
CREATE FUNCTION @.number_changes(p_list integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_last bigint;
    v_count bigint;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM @.changes c WHERE c.list = p_list AND c.seq IS NULL) THEN
        SELECT l.last_change INTO v_last FROM @.lists l WHERE l.id = p_list;
        RETURN v_last;
    END IF;
    SELECT l.last_change INTO v_last FROM @.lists l WHERE l.id = p_list FOR NO KEY UPDATE;
    WITH numbered AS (
        SELECT c.ordinal, row_number() OVER (ORDER BY c.ordinal) AS n
        FROM @.changes c WHERE c.list = p_list AND c.seq IS NULL
    )
    UPDATE @.changes c SET seq = v_last + n.n FROM numbered n WHERE c.ordinal = n.ordinal;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_last := v_last + v_count;
    UPDATE @.lists SET last_change = v_last WHERE id = p_list;
    RETURN v_last;
END $$;

-- Claims the best task `p_agent` can have, in one statement. `answer`: claimed, busy, expired (leases
-- ran out: return those tasks first, and ask again), nothing_ready, all_done.
CREATE FUNCTION @.claim_next(
    p_name text, p_agent text, p_check_busy boolean, p_leased boolean, p_run text, p_term bigint,
    p_operation uuid, p_lock_timeout text,
    OUT answer text, OUT busy bigint[], OUT id bigint, OUT status smallint, OUT owner text,
    OUT blocked_by bigint[], OUT blocks bigint[], OUT lease_agent text, OUT lease_run text,
    OUT lease_token bigint, OUT lease_until bigint, OUT body text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_list integer;
    v_now bigint;
    v_id bigint;
    v_ordinal bigint;
BEGIN
    PERFORM set_config('lock_timeout', p_lock_timeout, true);
    SELECT l.id INTO v_list FROM @.lists l WHERE l.name = p_name;
    IF v_list IS NULL THEN
        answer := 'all_done';
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock_shared(hashtext('@.'), v_list);
    v_now := @.clock_ms();
    IF EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = v_list AND t.lease_until <= v_now) THEN
        answer := 'expired';
        RETURN;
    END IF;
    IF p_check_busy THEN
        -- Two requests of one agent must not both find it idle.
        PERFORM pg_advisory_xact_lock(hashtextextended('@.' || v_list || ' ' || p_agent, 1));
        SELECT array_agg(t.id ORDER BY t.id) INTO busy FROM @.tasks t
            WHERE t.list = v_list AND t.status = 1 AND t.owner = p_agent;
        IF busy IS NOT NULL THEN
            answer := 'busy';
            RETURN;
        END IF;
    END IF;
    SELECT t.id INTO v_id FROM @.tasks t
        WHERE t.list = v_list AND t.status = 0 AND t.owner = p_agent AND t.owner IS NOT NULL
            AND t.open_blockers = 0 AND NOT t.parked AND NOT t.internal
        ORDER BY t.priority DESC, t.chain DESC, t.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF v_id IS NULL THEN
        -- Who holds a row here is another claim, which takes it.
        SELECT t.id INTO v_id FROM @.tasks t
            WHERE t.list = v_list AND t.status = 0 AND t.owner IS NULL AND t.open_blockers = 0
                AND NOT t.parked AND NOT t.internal
            ORDER BY t.priority DESC, t.chain DESC, t.id LIMIT 1 FOR UPDATE SKIP LOCKED;
    END IF;
    IF v_id IS NULL THEN
        answer := CASE WHEN @.anything_open(v_list) THEN 'nothing_ready' ELSE 'all_done' END;
        RETURN;
    END IF;
    UPDATE @.tasks t SET
        status = 1, owner = p_agent, version = t.version + 1,
        lease_agent = CASE WHEN p_leased THEN p_agent END,
        lease_run = CASE WHEN p_leased THEN p_run END,
        lease_token = CASE WHEN p_leased THEN greatest(t.lease_token + 1, v_now) ELSE t.lease_token END,
        lease_until = CASE WHEN p_leased THEN v_now + p_term END
        WHERE t.list = v_list AND t.id = v_id
        RETURNING t.id, t.status, t.owner, t.blocked_by, t.blocks, t.lease_agent, t.lease_run,
            t.lease_token, t.lease_until, t.body
        INTO id, status, owner, blocked_by, blocks, lease_agent, lease_run, lease_token, lease_until, body;
    INSERT INTO @.changes (list, at, op, id, status, owner, blocked_by, blocks, lease_agent,
            lease_run, lease_token, lease_until, body)
        VALUES (v_list, v_now, 'claim', v_id, claim_next.status, claim_next.owner, claim_next.blocked_by,
            claim_next.blocks, claim_next.lease_agent, claim_next.lease_run, claim_next.lease_token,
            claim_next.lease_until, claim_next.body)
        RETURNING ordinal INTO v_ordinal;
    INSERT INTO @.operations (id, answer) VALUES (p_operation, v_ordinal);
    answer := 'claimed';
END $$;

-- Whether a task that is shown in lists is not completed.
CREATE FUNCTION @.anything_open(p_list integer) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list AND t.status = 0 AND t.owner IS NULL
            AND t.open_blockers = 0 AND NOT t.parked AND NOT t.internal)
        OR EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list
            AND (t.status = 1 OR (t.status = 0 AND t.owner IS NOT NULL)) AND NOT t.internal)
        OR EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list AND t.status = 0 AND t.owner IS NULL
            AND (t.open_blockers > 0 OR t.parked) AND NOT t.internal)
$$;
