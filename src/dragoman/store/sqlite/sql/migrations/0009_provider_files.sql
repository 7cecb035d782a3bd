-- Blobs that were uploaded to a provider, and their names there: no process uploads one again.
CREATE TABLE provider_files (
  account  TEXT NOT NULL,
  id       TEXT NOT NULL,
  blob     TEXT NOT NULL,
  expires  REAL,
  created  REAL NOT NULL,
  PRIMARY KEY (account, id)
) WITHOUT ROWID;
CREATE INDEX provider_files_of_blob ON provider_files (blob);
