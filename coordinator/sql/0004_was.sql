-- The native id that a resource had before it got another one; NULL where it kept it.
ALTER TABLE history ADD COLUMN was TEXT;

-- Events whose time is before that of the event before them: the clock was set back.
CREATE TABLE clock_steps (sequence INTEGER PRIMARY KEY) STRICT;
