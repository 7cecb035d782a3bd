-- What sends are known by that may come again: a retry joins the turn that it repeats. Kept for a day.
CREATE TABLE send_keys (
  user     TEXT NOT NULL,
  name     TEXT NOT NULL,
  sum      TEXT NOT NULL,
  turn     TEXT NOT NULL,
  created  REAL NOT NULL,
  PRIMARY KEY (user, name)
) WITHOUT ROWID;
CREATE INDEX send_keys_by_age ON send_keys (created);
