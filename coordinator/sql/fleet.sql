-- Statements on targets, scans, runs, manifests, events and named values.

-- name: select_meta
SELECT value FROM meta WHERE key = ?1;

-- name: put_meta
INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value;

-- name: select_counted_targets
SELECT id, name, ns, pool, config, discover, interval_ms, system, state, filters, plugin_filters, inspected, reachable,
       last_run, applied, (SELECT count(*) FROM scans s JOIN resources r ON r.scan = s.row AND r.state < 3 WHERE s.target = t.row)
               - (SELECT count(*) FROM scans s JOIN resources r
                  ON r.scan = s.row AND r.state IN (1, 2) AND r.state = 2 WHERE s.target = t.row)
FROM targets t ORDER BY name;

-- The same without counting what they have.
-- name: select_targets
SELECT id, name, ns, pool, config, discover, interval_ms, system, state, filters, plugin_filters, inspected, reachable,
       last_run, applied, 0
FROM targets ORDER BY name;

-- name: select_target
SELECT id, name, ns, pool, config, discover, interval_ms, system, state, filters, plugin_filters, inspected, reachable,
       last_run, applied, 0
FROM targets WHERE name = ?1;

-- name: put_target
INSERT INTO targets (id, name, ns, pool, config, discover, interval_ms, system, state, filters, plugin_filters,
                     inspected, reachable, last_run, applied)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (id) DO UPDATE
SET name = excluded.name, ns = excluded.ns, pool = excluded.pool, config = excluded.config,
    discover = excluded.discover, interval_ms = excluded.interval_ms, system = excluded.system,
    state = excluded.state, filters = excluded.filters, plugin_filters = excluded.plugin_filters,
    inspected = excluded.inspected, reachable = excluded.reachable, last_run = excluded.last_run,
    applied = excluded.applied;

-- name: note_target
UPDATE targets
SET system = ?2, state = ?3, plugin_filters = ?4, inspected = ?5, reachable = ?6, last_run = ?7
WHERE id = ?1;

-- `?1` id of the target; `?2` type, empty: all
-- name: select_scans
SELECT s.row, t.id, s.type, s.stale, s.last_complete, s.last_run, s.filters, s.runs
FROM targets t JOIN scans s ON s.target = t.row
WHERE t.id = ?1 AND (?2 = '' OR s.type = ?2) ORDER BY s.type;

-- name: insert_scan
INSERT INTO scans (target, type) SELECT row, ?2 FROM targets WHERE id = ?1;

-- name: put_scan
UPDATE scans SET stale = ?2, last_complete = ?3, last_run = ?4, filters = ?5, runs = ?6 WHERE row = ?1;

-- `?1` name of the target, `?2` type; empty: any
-- name: find_scans
SELECT s.row FROM targets t JOIN scans s ON s.target = t.row
WHERE (?1 = '' OR t.name = ?1) AND (?2 = '' OR s.type = ?2) ORDER BY s.row;

-- name: count_resources
SELECT t.name, s.type, s.stale,
       (SELECT count(*) FROM resources r WHERE r.scan = s.row AND r.state < 3),
       (SELECT count(*) FROM resources r WHERE r.scan = s.row AND r.state IN (1, 2) AND r.state = 1),
       (SELECT count(*) FROM resources r WHERE r.scan = s.row AND r.state IN (1, 2) AND r.state = 2)
FROM scans s JOIN targets t ON t.row = s.target ORDER BY t.name, s.type;

-- name: insert_event
INSERT INTO events (sequence, at, bytes_before, ns, what, subject, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: select_events
SELECT sequence, at, ns, what, subject, data FROM events WHERE sequence > ?1 ORDER BY sequence LIMIT ?2;

-- name: first_event
SELECT sequence FROM events ORDER BY sequence LIMIT 1;

-- name: last_event
SELECT sequence, bytes_before + octet_length, at FROM
  (SELECT sequence, at, bytes_before, length(CAST(data AS BLOB)) AS octet_length FROM events
   ORDER BY sequence DESC LIMIT 1);

-- name: put_clock_step
INSERT INTO clock_steps (sequence) VALUES (?1);

-- name: clock_steps
SELECT sequence FROM clock_steps WHERE sequence > ?1 ORDER BY sequence;

-- name: delete_clock_steps
DELETE FROM clock_steps WHERE sequence <= ?1;

-- name: event_time
SELECT at FROM events WHERE sequence = ?1;

-- `?1` last sequence that may go
-- name: oldest_events
SELECT sequence, at, bytes_before FROM events WHERE sequence <= ?1 ORDER BY sequence LIMIT ?2;

-- name: delete_events
DELETE FROM events WHERE sequence <= ?1;

-- name: put_run
INSERT INTO runs (id, state, trigger, scope, started_at, finished_at, report) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO UPDATE
SET state = excluded.state, trigger = excluded.trigger, scope = excluded.scope, started_at = excluded.started_at,
    finished_at = excluded.finished_at, report = excluded.report;

-- name: select_run
SELECT id, state, trigger, scope, started_at, finished_at, report FROM runs WHERE id = ?1;

-- `?1` id below which they are wanted, empty: from the newest
-- name: select_runs
SELECT id, state, trigger, scope, started_at, finished_at, report FROM runs
WHERE id < CASE ?1 WHEN '' THEN '~' ELSE ?1 END ORDER BY id DESC LIMIT ?2;

-- name: select_unfinished_runs
SELECT id, state, trigger, scope, started_at, finished_at, report FROM runs
WHERE state IN ('queued', 'running') ORDER BY id;

-- `?1` how many are kept
-- name: prune_runs
DELETE FROM runs WHERE id < (SELECT id FROM runs ORDER BY id DESC LIMIT 1 OFFSET ?1 - 1)
AND state NOT IN ('queued', 'running');

-- name: put_manifest
INSERT INTO manifests (hash, encoded, first_seen) VALUES (?1, ?2, ?3) ON CONFLICT (hash) DO NOTHING;

-- name: drop_manifest
DELETE FROM manifests WHERE hash = ?1;

-- name: select_manifests
SELECT hash, encoded, first_seen FROM manifests ORDER BY first_seen, rowid;
