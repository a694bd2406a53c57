-- What users ask for, and what is done for it.
CREATE TABLE commands (
  id          TEXT PRIMARY KEY,
  kind        TEXT NOT NULL,             -- apply, destroy, drift
  state       TEXT NOT NULL,             -- queued, running, complete, failed, cancelled
  cancel      INTEGER NOT NULL DEFAULT 0,  -- 0 no, 1 what runs ends, 2 what runs is cancelled
  stacks      TEXT NOT NULL,             -- JSON array of their names
  plan        TEXT NOT NULL,             -- JSON: what it does; what stays as it is stands in the summary only
  created_at  INTEGER NOT NULL,
  started_at  INTEGER,
  finished_at INTEGER,
  owner       TEXT NOT NULL DEFAULT '',
  epoch       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX commands_unfinished ON commands (id) WHERE state IN ('queued', 'running');

-- A step of a command, from the moment when it is begun. A job of it is published after its row says so.
CREATE TABLE operations (
  command    TEXT NOT NULL,
  step       INTEGER NOT NULL,
  state      TEXT NOT NULL,              -- running, done, failed, blocked, cancelled
  phase      INTEGER NOT NULL,
  job        TEXT NOT NULL,              -- of the change that was asked for last; empty: none yet
  epoch      INTEGER NOT NULL,           -- grows when it is proven that nothing was applied
  uncertain  INTEGER NOT NULL,           -- an attempt may have been applied
  request_id TEXT NOT NULL,              -- of a change in progress
  native_id  TEXT NOT NULL,
  code       TEXT NOT NULL,
  message    TEXT NOT NULL,
  owner      TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (command, step)
) STRICT, WITHOUT ROWID;

CREATE INDEX operations_job ON operations (job) WHERE job <> '';

-- Creates that ended without knowing whether they were applied: the next one of the same resource has their key.
CREATE TABLE unsettled (
  place TEXT PRIMARY KEY,  -- JSON array: stack, name, target, type
  key   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE resources ADD COLUMN name TEXT NOT NULL DEFAULT '';         -- in its stack
ALTER TABLE resources ADD COLUMN declared TEXT NOT NULL DEFAULT '';     -- JSON: as it was applied last
ALTER TABLE resources ADD COLUMN created INTEGER NOT NULL DEFAULT 0;    -- made by a command
CREATE INDEX resources_stack ON resources (stack, name) WHERE managed;

ALTER TABLE targets ADD COLUMN applied INTEGER NOT NULL DEFAULT 0;      -- declared by a file that was applied
