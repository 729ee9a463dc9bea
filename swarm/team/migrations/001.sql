-- Rosters. `roster` is what the file of the same team would hold: text and not JSON, because unknown
-- keys and the order of keys survive in it.

-- Times are the database's, in milliseconds since 1970. Tests put another in its place.
CREATE FUNCTION @.teams_now() RETURNS bigint LANGUAGE sql VOLATILE
    AS 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

-- Grows with every change of any roster, so that a team that is deleted and made again is not taken for
-- the one that was seen before.
CREATE SEQUENCE @.team_versions;

-- Locked by whoever changes it.
CREATE TABLE @.teams (
    -- In lower case: no two teams differ in case alone.
    id text PRIMARY KEY,
    name text NOT NULL,
    version bigint NOT NULL DEFAULT nextval('@.team_versions'),
    roster text NOT NULL
);
