-- Blobs that were uploaded to a provider, and their names there: no process uploads one again.
CREATE TABLE provider_files (
  account  TEXT NOT NULL,
  id       TEXT NOT NULL,
  blob     TEXT NOT NULL,
  expires  DOUBLE PRECISION,
  created  DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (account, id)
);
CREATE INDEX provider_files_of_blob ON provider_files (blob);
