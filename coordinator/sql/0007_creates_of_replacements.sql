-- Where a replacement has made the new object first, its row has the job of the deletion. A result of the create that
-- comes late is judged by this.
CREATE TABLE creates_of_replacements (
  job       TEXT PRIMARY KEY,
  command   TEXT NOT NULL,
  step      INTEGER NOT NULL,
  native_id TEXT NOT NULL          -- of what was made
) STRICT, WITHOUT ROWID;

CREATE INDEX creates_of_replacements_command ON creates_of_replacements (command);
