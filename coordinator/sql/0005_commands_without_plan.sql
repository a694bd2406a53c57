-- A plan may have many megabytes. What is asked for often, how a command goes, stands beside it.
CREATE INDEX commands_without_plan
ON commands (id, kind, state, cancel, stacks, created_at, started_at, finished_at);
