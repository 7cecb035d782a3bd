-- Files that callers of OpenAI's API uploaded, to name them by their ID until they are deleted or expire.
CREATE TABLE files (
  id          TEXT PRIMARY KEY,
  "user"      TEXT NOT NULL,
  blob        TEXT NOT NULL,
  name        TEXT NOT NULL,
  media_type  TEXT NOT NULL,
  size        BIGINT NOT NULL,
  purpose     TEXT NOT NULL,
  created     DOUBLE PRECISION NOT NULL,
  expires     DOUBLE PRECISION
);
CREATE INDEX files_of_user ON files ("user", created, id);
CREATE INDEX files_of_blob ON files (blob);
CREATE INDEX files_by_expiry ON files (expires) WHERE expires IS NOT NULL;
