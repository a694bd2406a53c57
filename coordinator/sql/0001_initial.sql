-- Times are nanoseconds since 1970 (UTC). Rows that several coordinators would share carry the owner and the epoch
-- that a write of it is conditional on.
PRAGMA application_id = 0x4d757374;

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE targets (
  row            INTEGER PRIMARY KEY,
  id             TEXT NOT NULL UNIQUE,
  name           TEXT NOT NULL UNIQUE,
  ns             TEXT NOT NULL,
  pool           TEXT NOT NULL,
  config         TEXT NOT NULL,     -- JSON, secrets as references
  discover       INTEGER NOT NULL,
  interval_ms    INTEGER NOT NULL,
  system         TEXT NOT NULL,
  state          INTEGER NOT NULL,  -- 0 active, 1 changed, 2 removed
  filters        TEXT NOT NULL,     -- JSON array
  plugin_filters TEXT NOT NULL,     -- JSON array
  inspected      INTEGER NOT NULL,
  reachable      INTEGER NOT NULL,
  last_run       TEXT NOT NULL,
  owner          TEXT NOT NULL DEFAULT '',
  epoch          INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE scans (
  row           INTEGER PRIMARY KEY,
  target        INTEGER NOT NULL REFERENCES targets (row),
  type          TEXT NOT NULL,
  stale         INTEGER NOT NULL DEFAULT 0,
  last_complete INTEGER,
  last_run      TEXT NOT NULL DEFAULT '',
  filters       TEXT NOT NULL DEFAULT '',
  UNIQUE (target, type)
) STRICT;

-- What every read needs stands before the properties, so that they are only touched when they are wanted.
CREATE TABLE resources (
  row        INTEGER PRIMARY KEY,
  key        INTEGER NOT NULL,            -- 64-bit hash of scan and native_id; not unique
  scan       INTEGER NOT NULL,            -- scans.row
  parent     INTEGER NOT NULL,            -- resources.row, 0: none
  state      INTEGER NOT NULL DEFAULT 0,  -- 0 present, 1 stale, 2 missing, 3 vanished, 4 filtered
  version    INTEGER NOT NULL DEFAULT 1,
  first_seen INTEGER NOT NULL,
  changed_at INTEGER NOT NULL,
  last_seen  INTEGER,                     -- set while no complete scan vouches for the row (state is not 0)
  managed    INTEGER NOT NULL DEFAULT 0,
  drifted    INTEGER NOT NULL DEFAULT 0,
  stack      TEXT NOT NULL DEFAULT '',
  content    BLOB NOT NULL,               -- 128-bit hash of the properties, high half first, big-endian
  native_id  TEXT NOT NULL,
  uid        TEXT NOT NULL,
  label      TEXT NOT NULL,
  properties TEXT NOT NULL
) STRICT;

CREATE INDEX resources_key ON resources (key);
CREATE INDEX resources_listed ON resources (scan) WHERE state < 3;
CREATE INDEX resources_marked ON resources (scan, state) WHERE state IN (1, 2);
CREATE INDEX resources_parent ON resources (parent) WHERE parent <> 0 AND state < 3;

-- Version 1 of a resource, its discovery, has no row: it is known from first_seen.
CREATE TABLE history (
  row      INTEGER PRIMARY KEY,
  resource INTEGER NOT NULL,  -- resources.row
  version  INTEGER NOT NULL,
  at       INTEGER NOT NULL,
  cause    TEXT NOT NULL,
  patch    TEXT NOT NULL,     -- RFC 6902, from the version before
  before   TEXT               -- properties of the version before, in versions 2, 18, 34, ...
) STRICT;

CREATE UNIQUE INDEX history_version ON history (resource, version);

CREATE TABLE events (
  sequence     INTEGER PRIMARY KEY,
  at           INTEGER NOT NULL,
  bytes_before INTEGER NOT NULL,  -- sum of the lengths of data of all events before this one
  ns           TEXT NOT NULL,
  what         TEXT NOT NULL,
  subject      TEXT NOT NULL,
  data         TEXT NOT NULL
) STRICT;

CREATE TABLE runs (
  id          TEXT PRIMARY KEY,
  state       TEXT NOT NULL,
  trigger     TEXT NOT NULL,
  scope       TEXT NOT NULL,
  started_at  INTEGER,
  finished_at INTEGER,
  report      TEXT NOT NULL,
  owner       TEXT NOT NULL DEFAULT '',
  epoch       INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE INDEX runs_unfinished ON runs (id) WHERE state IN ('queued', 'running');

CREATE TABLE manifests (
  hash       TEXT PRIMARY KEY,
  encoded    BLOB NOT NULL,  -- schema/manifest.capnp
  first_seen INTEGER NOT NULL
) STRICT;
