-- Sign-ins that were signed out, by the hash of their cookie, until the cookie would have expired.
CREATE TABLE ended_sessions (
  id       TEXT PRIMARY KEY,
  expires  REAL NOT NULL
) WITHOUT ROWID;
