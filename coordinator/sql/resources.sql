-- Statements on resources and their history; `?1` is the row unless a comment says otherwise.

-- A resource as it is shown; own_state is the row's, state also knows of its scan's. CROSS JOIN keeps the order of the
-- tables, so that a range of rows is read in row order.
-- name: create_resource_view
CREATE TEMP VIEW resource AS
SELECT r.row, t.name AS target, s.type, r.native_id, r.uid, r.label, r.stack, r.managed,
       CASE WHEN r.state = 0 AND s.stale THEN 1 ELSE r.state END AS state,
       r.drifted, r.properties, ps.type AS parent_type, p.native_id AS parent_native_id, r.first_seen,
       coalesce(r.last_seen, max(r.changed_at, r.first_seen, coalesce(s.last_complete, 0))) AS last_seen,
       r.changed_at, r.version, r.scan, r.parent, r.state AS own_state
FROM resources r
CROSS JOIN scans s ON s.row = r.scan
CROSS JOIN targets t ON t.row = s.target
LEFT JOIN resources p ON p.row = r.parent
LEFT JOIN scans ps ON ps.row = p.scan;

-- name: select_resource
SELECT * FROM resource WHERE row = ?1;

-- `?1` after, `?2` up to, `?3` bit set of states, `?4` managed (-1: any), `?5` drifted only, `?6` text in lower case,
-- `?7` stack, `?8` target, `?9` type
-- name: query_all
SELECT * FROM resource
WHERE row > ?1 AND row <= ?2 AND (?3 >> state) & 1 AND (?4 < 0 OR managed = ?4) AND (NOT ?5 OR drifted)
  AND (?6 = '' OR instr(lower(label), ?6) OR instr(lower(native_id), ?6))
  AND (?7 = '' OR stack = ?7) AND (?8 = '' OR target = ?8) AND (?9 = '' OR type = ?9)
ORDER BY row;

-- As query_all, for states that are listed; `?8` scan
-- name: query_scan
SELECT * FROM resource
WHERE row > ?1 AND row <= ?2 AND (?3 >> state) & 1 AND (?4 < 0 OR managed = ?4) AND (NOT ?5 OR drifted)
  AND (?6 = '' OR instr(lower(label), ?6) OR instr(lower(native_id), ?6))
  AND (?7 = '' OR stack = ?7) AND scan = ?8 AND own_state < 3
ORDER BY row;

-- name: last_resource
SELECT coalesce(max(row), 0) FROM resources;

-- `?1` scan
-- name: select_index
SELECT row, native_id, content, uid, parent, state, managed FROM resources WHERE scan = ?1 AND state < 3 ORDER BY row;

-- `?1` key, `?2` scan, `?3` native id
-- name: find_resource
SELECT row, state, changed_at, first_seen FROM resources WHERE key = ?1 AND scan = ?2 AND native_id = ?3;

-- name: find_children
SELECT row FROM resources WHERE parent = ?1 AND parent <> 0 AND state < 3 ORDER BY row;

-- name: find_scan
SELECT scan FROM resources WHERE row = ?1;

-- name: select_properties
SELECT properties, content, first_seen, version, created FROM resources WHERE row = ?1;

-- name: insert_resource
INSERT INTO resources (key, scan, parent, first_seen, changed_at, content, native_id, uid, label, properties)
VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: change_resource
UPDATE resources
SET version = version + 1, changed_at = ?2, content = ?3, uid = ?4, label = ?5, properties = ?6
WHERE row = ?1;

-- Other text of the same properties.
-- name: restate_resource
UPDATE resources SET content = ?2, properties = ?3 WHERE row = ?1;

-- name: take_back
UPDATE resources SET parent = ?2, state = 0, last_seen = NULL WHERE row = ?1;

-- name: rename_resource
UPDATE resources SET version = version + 1, changed_at = ?2, key = ?3, native_id = ?4, label = ?5, parent = ?6
WHERE row = ?1;

-- name: reparent_resource
UPDATE resources SET parent = ?2 WHERE row = ?1;

-- name: leave_resource
UPDATE resources
SET version = version + 1, changed_at = ?2, state = ?3,
    last_seen = coalesce(last_seen, max(changed_at, first_seen,
                                        coalesce((SELECT last_complete FROM scans WHERE row = scan), 0)))
WHERE row = ?1;

-- name: mark_stale
UPDATE resources
SET state = 1,
    last_seen = max(changed_at, first_seen, coalesce((SELECT last_complete FROM scans WHERE row = scan), 0))
WHERE row = ?1 AND state = 0;

-- name: mark_present
UPDATE resources SET state = 0, last_seen = NULL WHERE row = ?1 AND state IN (1, 2);

-- name: set_uid
UPDATE resources SET uid = ?2 WHERE row = ?1;

-- name: set_label
UPDATE resources SET label = ?2 WHERE row = ?1 AND label <> ?2;

-- `?1` scan
-- name: select_filtered
SELECT id, listed FROM filtered WHERE scan = ?1;

-- `?1` scan
-- name: put_filtered
INSERT INTO filtered (scan, id, listed) VALUES (?1, ?2, ?3)
ON CONFLICT (scan, id) DO UPDATE SET listed = excluded.listed;

-- `?1` scan
-- name: drop_filtered
DELETE FROM filtered WHERE scan = ?1 AND id = ?2;

-- `?1` scan
-- name: clear_filtered
DELETE FROM filtered WHERE scan = ?1;

-- name: unmark_stale
UPDATE resources SET state = 0, last_seen = NULL WHERE row = ?1 AND state = 1;

-- To be run before the row itself is written: `before` takes the properties from it. `?5` the first state that is
-- refused, `?6` whether the native id will be another.
-- name: record_history
INSERT INTO history (resource, version, at, cause, patch, before, was)
SELECT row, version + 1, ?2, ?3, ?4, CASE WHEN version % 16 = 1 THEN properties END, CASE WHEN ?6 THEN native_id END
FROM resources WHERE row = ?1 AND state < ?5;

-- Keeps 976 to 992 versions, the oldest of them one with `before`; to be run after the row was written.
-- name: trim_history
DELETE FROM history
WHERE resource = ?1 AND version < (SELECT version - 976 FROM resources WHERE row = ?1 AND version % 16 = 2);

-- name: select_history
SELECT version, at, cause, patch, was FROM history WHERE resource = ?1 ORDER BY version;

-- The last version at the time `?2` and the first that is kept.
-- name: version_at
SELECT (SELECT max(version) FROM history WHERE resource = ?1 AND at <= ?2),
       (SELECT min(version) FROM history WHERE resource = ?1);

-- The last version with `before` that helps to rebuild version `?2`.
-- name: select_snapshot
SELECT version, before FROM history
WHERE resource = ?1 AND version <= ?2 + 1 AND before IS NOT NULL ORDER BY version DESC LIMIT 1;

-- name: select_patches
SELECT patch FROM history WHERE resource = ?1 AND version BETWEEN ?2 AND ?3 ORDER BY version;

-- `?2` stack, `?3` name, `?4` declared
-- name: manage_resource
UPDATE resources SET managed = 1, stack = ?2, name = ?3, declared = ?4, drifted = 0 WHERE row = ?1;

-- No filter has judged what was managed: without the hash of its content it is looked at again.
-- name: release_resource
UPDATE resources
SET managed = 0, stack = '', name = '', declared = '', drifted = 0, content = zeroblob(16)
WHERE row = ?1 AND managed;

-- `?1` the target's name until now, `?2` from now on
-- name: rename_in_claims
UPDATE resources SET declared = json_set(declared, '$.target', ?2)
WHERE managed AND iif(json_valid(declared), declared ->> '$.target', '') = ?1;

-- name: set_drifted
UPDATE resources SET drifted = ?2 WHERE row = ?1 AND drifted <> ?2;

-- name: set_created
UPDATE resources SET created = 1 WHERE row = ?1;

-- `?1` stack
-- name: select_stack
SELECT r.row, t.name, s.type, r.native_id, r.uid, r.name,
       CASE WHEN r.state = 0 AND s.stale THEN 1 ELSE r.state END, r.drifted, r.properties, r.declared, r.content, r.parent,
       r.changed_at
FROM resources r CROSS JOIN scans s ON s.row = r.scan CROSS JOIN targets t ON t.row = s.target
WHERE r.stack = ?1 AND r.managed AND r.state < 3 ORDER BY r.row;

-- `?1` stack, `?2` name
-- name: select_named
SELECT r.row, t.name, s.type, r.native_id, r.uid, r.name,
       CASE WHEN r.state = 0 AND s.stale THEN 1 ELSE r.state END, r.drifted, r.properties, r.declared, r.content, r.parent,
       r.changed_at
FROM resources r CROSS JOIN scans s ON s.row = r.scan CROSS JOIN targets t ON t.row = s.target
WHERE r.stack = ?1 AND r.name = ?2 AND r.managed AND r.state < 3 ORDER BY r.row;

-- name: select_managed
SELECT stack, name, declared FROM resources WHERE row = ?1 AND managed;

-- name: select_stacks
SELECT stack, count(*) FROM resources WHERE managed AND state < 3 GROUP BY stack ORDER BY stack;
