-- Who uploaded what: theirs to see, until a message of theirs holds it.
CREATE TABLE uploads (
  blob     TEXT NOT NULL,
  user     TEXT NOT NULL,
  created  REAL NOT NULL,
  PRIMARY KEY (blob, user)
) WITHOUT ROWID;
