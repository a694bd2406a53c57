-- Ids that the filters left out, so that they need not be read in each run.
CREATE TABLE filtered (
  scan   INTEGER NOT NULL,  -- scans.row
  id     BLOB NOT NULL,     -- 128-bit hash of the native id, high half first, big-endian
  listed INTEGER NOT NULL,  -- 64-bit hash of what the list said of it
  PRIMARY KEY (scan, id)
) STRICT, WITHOUT ROWID;

ALTER TABLE scans ADD COLUMN runs INTEGER NOT NULL DEFAULT 0;  -- that used this memory
