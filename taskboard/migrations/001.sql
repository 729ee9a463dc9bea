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
    forgotten bigint NOT NULL DEFAULT 0,
    -- No ready task comes before this place in tasks_ready. Claims look from here on, so that they
    -- do not walk over the entries of tasks that are taken, which stay until the next vacuum.
    -- Whoever makes a task ready sets it back.
    head_priority bigint NOT NULL DEFAULT 9223372036854775807,
    head_chain integer NOT NULL DEFAULT 2147483647,
    head_turn bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX lists_name ON @.lists (lower(name));
CREATE UNIQUE INDEX lists_exact ON @.lists (name);

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
    -- When it became what it is: ready, taken, waiting or done. By clock_ms().
    since bigint NOT NULL DEFAULT 0,
    -- The request that claimed it last, so that one whose answer was lost is not carried out twice.
    operation bigint,
    body text NOT NULL,
    PRIMARY KEY (list, id)
);
ALTER TABLE @.tasks SET (
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05, autovacuum_analyze_threshold = 2000
);
-- Every open task that is not internal is in exactly one of the first three, so that a claim moves
-- a row from one to another, and whether anything is left to do is three short looks. Every
-- index costs a claim some time, also those that the row is not in.
CREATE INDEX tasks_ready ON @.tasks (list, priority, chain, (-id))
    WHERE status = 0 AND owner IS NULL AND open_blockers = 0 AND NOT parked AND NOT internal;
CREATE INDEX tasks_owner ON @.tasks (list, status, owner) WHERE owner IS NOT NULL AND status < 2;
CREATE INDEX tasks_waiting ON @.tasks (list)
    WHERE status = 0 AND owner IS NULL AND (open_blockers > 0 OR parked) AND NOT internal;
CREATE INDEX tasks_lease_end ON @.tasks (list, lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX tasks_run ON @.tasks (list, lease_run) WHERE lease_run IS NOT NULL;

-- What was done, in the order of `ordinal` for every single task. A claim must not wait for others
-- to be numbered, so its change is written without a number and gets it from the next change that has
-- the list for itself, or the first who looks (number_changes), without gaps.
CREATE TABLE @.changes (
    ordinal bigint GENERATED ALWAYS AS IDENTITY (CACHE 1),
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
-- For prune alone: next to nothing to keep up to date.
CREATE INDEX changes_at ON @.changes USING brin (at);
ALTER TABLE @.changes SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Whoever changes more than one task, or what others wait for, has the list for himself; claims
-- share it with each other, and tell the tasks apart by their rows' locks.
CREATE FUNCTION @.lock_list(p_list integer) RETURNS void LANGUAGE sql AS
    'SELECT pg_advisory_xact_lock(hashtext(''@.''), p_list)';

-- Begins a change: makes the list if need be, takes its lock, and says what time it is. `exact` is
-- the list's name as it is written.
--
-- Here and below the plans are made once for a connection and use the indexes: with a plan for the
-- values at hand every call would be planned, and a plan that goes by old statistics may read the
-- whole table for a row that is not there.
CREATE FUNCTION @.enter(p_name text, OUT list integer, OUT exact text, OUT now_ms bigint, OUT expired boolean)
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    SELECT l.id, l.name INTO list, exact FROM @.lists l WHERE lower(l.name) = lower(p_name);
    IF NOT FOUND THEN
        INSERT INTO @.lists (name) VALUES (p_name) ON CONFLICT DO NOTHING;
        SELECT l.id, l.name INTO STRICT list, exact FROM @.lists l WHERE lower(l.name) = lower(p_name);
    END IF;
    PERFORM @.lock_list(list);
    now_ms := @.clock_ms();
    expired := coalesce((SELECT t.lease_until FROM @.tasks t
        WHERE t.list = enter.list AND t.lease_until IS NOT NULL
        ORDER BY t.lease_until LIMIT 1) <= now_ms, false);
END $$;

-- Gives numbers to the changes that have none, in an order in which they may have happened: what
-- was done to one task is in its order, because whoever did it held the row. Returns the last number.
CREATE FUNCTION @.number_changes(p_list integer) RETURNS bigint
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
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
        SELECT c.ctid AS place, row_number() OVER (ORDER BY c.ordinal) AS n
        FROM @.changes c WHERE c.list = p_list AND c.seq IS NULL
    )
    UPDATE @.changes c SET seq = v_last + n.n FROM numbered n WHERE c.ctid = n.place;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    v_last := v_last + v_count;
    UPDATE @.lists SET last_change = v_last WHERE id = p_list;
    RETURN v_last;
END $$;

-- Forgets changes and operations older than this many milliseconds, at most `p_limit` of each. One at
-- a time: whoever finds another at it leaves it to him.
CREATE FUNCTION @.prune(p_changes bigint, p_operations bigint, p_limit bigint,
    OUT changes bigint, OUT operations bigint)
LANGUAGE plpgsql AS $$
BEGIN
    changes := 0;
    operations := 0;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('@.prune', 0)) THEN
        RETURN;
    END IF;
    -- Numbered first, so that whoever follows is told that something is gone.
    PERFORM @.number_changes(l.id) FROM (SELECT id FROM @.lists ORDER BY id) l
        WHERE EXISTS (SELECT 1 FROM @.changes c WHERE c.list = l.id AND c.seq IS NULL);
    WITH gone AS (
        DELETE FROM @.changes c WHERE c.ctid = ANY (ARRAY(
            SELECT o.ctid FROM @.changes o WHERE o.at < @.clock_ms() - p_changes LIMIT p_limit))
        RETURNING c.list, c.seq
    ), last AS (
        SELECT g.list, max(g.seq) AS seq, count(*) AS n FROM gone g GROUP BY g.list
    ), noted AS (
        UPDATE @.lists l SET forgotten = greatest(l.forgotten, last.seq) FROM last WHERE l.id = last.list
    )
    SELECT coalesce(sum(n), 0) INTO changes FROM last;
    DELETE FROM @.operations o WHERE o.ctid = ANY (ARRAY(
        SELECT p.ctid FROM @.operations p
        WHERE p.at < now() - p_operations * interval '1 millisecond' LIMIT p_limit));
    GET DIAGNOSTICS operations = ROW_COUNT;
END $$;

-- Whether a task that is shown in lists is not completed.
CREATE FUNCTION @.anything_open(p_list integer) RETURNS boolean
LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list AND t.status = 0 AND t.owner IS NULL
            AND t.open_blockers = 0 AND NOT t.parked AND NOT t.internal)
        OR EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list
            AND t.status < 2 AND t.owner IS NOT NULL AND NOT t.internal)
        OR EXISTS (SELECT 1 FROM @.tasks t WHERE t.list = p_list AND t.status = 0 AND t.owner IS NULL
            AND (t.open_blockers > 0 OR t.parked) AND NOT t.internal);
END $$;

-- Claims the best task `p_agent` can have that no other claim is taking, in one statement. `answer`:
-- claimed, busy, expired (leases ran out: return those tasks first, and ask again), nothing_ready,
-- all_done, no_list (`p_list` is not the list of that name).
--
-- Expressions that need no table are assigned: a statement of their own would cost ten times as much.
CREATE FUNCTION @.claim_next(
    p_list integer, p_name text, p_agent text, p_check_busy boolean, p_leased boolean, p_run text,
    p_term bigint, p_operation bigint, p_lock_timeout text,
    OUT answer text, OUT busy bigint[], OUT id bigint, OUT status smallint, OUT owner text,
    OUT blocked_by bigint[], OUT blocks bigint[], OUT lease_agent text, OUT lease_run text,
    OUT lease_token bigint, OUT lease_until bigint, OUT body text
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    v_now bigint;
    v_lease_end bigint;
    v_priority bigint;
    v_chain integer;
    v_turn bigint;
BEGIN
    answer := set_config('lock_timeout', p_lock_timeout, true);
    -- The second one is waited for by whoever wants to know what became of this request.
    answer := pg_advisory_xact_lock_shared(hashtext('@.'), p_list)::text
        || pg_advisory_xact_lock(p_operation)::text;
    v_now := @.clock_ms();
    SELECT l.head_priority, l.head_chain, l.head_turn,
        (SELECT t.lease_until FROM @.tasks t WHERE t.list = p_list AND t.lease_until IS NOT NULL
            ORDER BY t.lease_until LIMIT 1)
        INTO v_priority, v_chain, v_turn, v_lease_end
        FROM @.lists l WHERE l.id = p_list AND l.name = p_name;
    IF v_priority IS NULL THEN
        answer := 'no_list';
        RETURN;
    END IF;
    IF v_lease_end <= v_now THEN
        answer := 'expired';
        RETURN;
    END IF;
    IF p_check_busy THEN
        -- Two requests of one agent must not both find it idle.
        answer := pg_advisory_xact_lock(hashtextextended('@.' || p_list || ' ' || p_agent, 1))::text;
        SELECT array_agg(t.id ORDER BY t.id) INTO busy FROM @.tasks t
            WHERE t.list = p_list AND t.status = 1 AND t.owner = p_agent;
        IF busy IS NOT NULL THEN
            answer := 'busy';
            RETURN;
        END IF;
    END IF;
    status := 1;
    owner := p_agent;
    IF p_leased THEN
        lease_agent := p_agent;
        lease_run := p_run;
        lease_until := v_now + p_term;
    END IF;
    -- First what is assigned to the agent. Who holds a row here is another claim, which takes it.
    UPDATE @.tasks t SET
        status = 1, owner = p_agent, version = t.version + 1, operation = p_operation, since = v_now,
        lease_agent = claim_next.lease_agent, lease_run = claim_next.lease_run,
        lease_until = claim_next.lease_until,
        lease_token = CASE WHEN p_leased THEN greatest(t.lease_token + 1, v_now) ELSE t.lease_token END
        WHERE t.list = p_list AND t.id = coalesce(
            (SELECT a.id FROM @.tasks a
                WHERE a.list = p_list AND a.status = 0 AND a.owner = p_agent AND a.owner IS NOT NULL
                    AND a.open_blockers = 0 AND NOT a.parked AND NOT a.internal
                ORDER BY a.priority DESC, a.chain DESC, a.id LIMIT 1 FOR UPDATE SKIP LOCKED),
            (SELECT r.id FROM @.tasks r
                WHERE r.list = p_list AND r.status = 0 AND r.owner IS NULL AND r.open_blockers = 0
                    AND NOT r.parked AND NOT r.internal
                    AND (r.priority, r.chain, -r.id) <= (v_priority, v_chain, v_turn)
                ORDER BY r.priority DESC, r.chain DESC, -r.id DESC LIMIT 1 FOR UPDATE SKIP LOCKED))
        RETURNING t.id, t.blocked_by, t.blocks, t.lease_token, t.body
        INTO id, blocked_by, blocks, lease_token, body;
    -- What another claim holds may still be taken back, with its server or its link; whoever waits
    -- looks again after a while. With 256 workers, waiting for each of them here took over ten seconds.
    IF claim_next.id IS NULL THEN
        answer := CASE WHEN @.anything_open(p_list) THEN 'nothing_ready' ELSE 'all_done' END;
        RETURN;
    END IF;
    INSERT INTO @.changes (list, at, op, id, status, owner, blocked_by, blocks, lease_agent,
            lease_run, lease_token, lease_until, body)
        VALUES (p_list, v_now, 'claim', claim_next.id, 1, p_agent, claim_next.blocked_by,
            claim_next.blocks, claim_next.lease_agent, claim_next.lease_run, claim_next.lease_token,
            claim_next.lease_until, claim_next.body);
    -- Now and then. What others hold is still ready for this look, so nothing is passed over if
    -- they give it up.
    IF claim_next.id % 64 = 0 THEN
        UPDATE @.lists l SET head_priority = h.priority, head_chain = h.chain, head_turn = -h.id
            FROM (SELECT r.priority, r.chain, r.id FROM @.tasks r
                WHERE r.list = p_list AND r.status = 0 AND r.owner IS NULL AND r.open_blockers = 0
                    AND NOT r.parked AND NOT r.internal
                    AND (r.priority, r.chain, -r.id) <= (v_priority, v_chain, v_turn)
                ORDER BY r.priority DESC, r.chain DESC, -r.id DESC LIMIT 1) h
            WHERE l.id = p_list;
    END IF;
    answer := 'claimed';
END $$;
