-- What a result that comes after its step had ended is judged by, whatever the size of the command's plan.
ALTER TABLE operations ADD COLUMN name TEXT NOT NULL DEFAULT '';       -- of the step; empty: no change was asked for
ALTER TABLE operations ADD COLUMN target TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN type TEXT NOT NULL DEFAULT '';
ALTER TABLE operations ADD COLUMN creates INTEGER NOT NULL DEFAULT 0;  -- one that succeeded has made one object

-- Each plan is read once: the order of the join is forced.
INSERT OR REPLACE INTO operations
SELECT done.command, done.step, done.state, done.phase, done.job, done.epoch, done.uncertain, done.request_id,
       done.native_id, done.code, done.message, done.owner, coalesce(step.value ->> '$.name', ''),
       coalesce(step.value ->> '$.target', ''), coalesce(step.value ->> '$.type', ''),
       coalesce(step.value ->> '$.action', '') = 'create'
FROM commands
CROSS JOIN json_each(CASE WHEN json_valid(commands.plan) THEN commands.plan ELSE '{}' END, '$.steps') AS step
CROSS JOIN operations AS done ON done.command = commands.id AND done.step = step.key
WHERE done.job <> '';
