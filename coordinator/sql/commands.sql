-- Statements on commands and their operations.

-- name: put_command
INSERT INTO commands (id, kind, state, cancel, stacks, plan, created_at, started_at, finished_at, bytes)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, length(CAST(?6 AS BLOB)))
ON CONFLICT (id) DO UPDATE
SET state = excluded.state, cancel = excluded.cancel, plan = excluded.plan, started_at = excluded.started_at,
    finished_at = excluded.finished_at, bytes = excluded.bytes;

-- All but the plan.
-- name: set_command
UPDATE commands SET state = ?2, cancel = ?3, started_at = ?4, finished_at = ?5 WHERE id = ?1;

-- Who needs no plan does not read its pages either: that is what the index is for.
-- name: select_command
SELECT id, kind, state, cancel, stacks, '', created_at, started_at, finished_at
FROM commands INDEXED BY commands_without_plan WHERE id = ?1;

-- name: select_plan
SELECT plan FROM commands WHERE id = ?1;

-- `?1` id below which they are wanted, empty: from the newest
-- name: select_commands
SELECT id, kind, state, cancel, stacks, '', created_at, started_at, finished_at
FROM commands INDEXED BY commands_without_plan
WHERE id < CASE ?1 WHEN '' THEN '~' ELSE ?1 END ORDER BY id DESC LIMIT ?2;

-- name: select_unfinished_commands
SELECT id, kind, state, cancel, stacks, plan, created_at, started_at, finished_at FROM commands
WHERE state IN ('queued', 'running') ORDER BY id;

-- Of those that have ended: `?1` how many are kept, `?2` with how many bytes of plans. The newest always is.
-- name: select_commands_to_prune
SELECT id FROM (SELECT id, row_number() OVER newest AS place, sum(bytes) OVER newest AS taken
                FROM commands INDEXED BY commands_ended WHERE state NOT IN ('queued', 'running')
                WINDOW newest AS (ORDER BY id DESC))
WHERE place > ?1 OR (place > 1 AND taken > ?2);

-- name: drop_command
DELETE FROM commands WHERE id = ?1;

-- name: drop_operations
DELETE FROM operations WHERE command = ?1;

-- name: drop_creates_of_replacements
DELETE FROM creates_of_replacements WHERE command = ?1;

-- name: put_operation
INSERT INTO operations (command, step, state, phase, job, epoch, uncertain, request_id, native_id, code, message, name,
                        target, type, creates)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT (command, step) DO UPDATE
SET state = excluded.state, phase = excluded.phase, job = excluded.job, epoch = excluded.epoch,
    uncertain = excluded.uncertain, request_id = excluded.request_id, native_id = excluded.native_id,
    code = excluded.code, message = excluded.message, name = excluded.name, target = excluded.target,
    type = excluded.type, creates = excluded.creates;

-- name: select_operations
SELECT command, step, state, phase, job, epoch, uncertain, request_id, native_id, code, message, name, target, type,
       creates
FROM operations WHERE command = ?1 AND step >= ?2 ORDER BY step LIMIT ?3;

-- name: select_operation_of
SELECT command, step, state, phase, job, epoch, uncertain, request_id, native_id, code, message, name, target, type,
       creates
FROM operations WHERE job = ?1 AND job <> ''
UNION ALL
SELECT operations.command, operations.step, 'done', phase, made.job, epoch, 0, '', made.native_id, '', '', name, target,
       type, 1
FROM creates_of_replacements AS made JOIN operations USING (command, step) WHERE made.job = ?1;

-- name: put_create_of_replacement
INSERT OR REPLACE INTO creates_of_replacements (job, command, step, native_id) VALUES (?1, ?2, ?3, ?4);

-- name: put_unsettled
INSERT INTO unsettled (place, key) VALUES (?1, ?2) ON CONFLICT (place) DO UPDATE SET key = excluded.key;

-- `?1` the target's name until now, `?2` from now on
-- name: rename_unsettled
UPDATE OR IGNORE unsettled SET place = json_set(place, '$[2]', ?2) WHERE place ->> '$[2]' = ?1;

-- As rename_unsettled.
-- name: rename_in_operations
UPDATE operations SET target = ?2 WHERE target = ?1;

-- name: drop_unsettled
DELETE FROM unsettled WHERE place = ?1;

-- name: select_unsettled
SELECT key FROM unsettled WHERE place = ?1;
