-- Plans may have many megabytes: how many ended commands are kept is a matter of that, too.
ALTER TABLE commands ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;  -- of the plan
UPDATE commands SET bytes = length(CAST(plan AS BLOB));

CREATE INDEX commands_ended ON commands (id, bytes) WHERE state NOT IN ('queued', 'running');
