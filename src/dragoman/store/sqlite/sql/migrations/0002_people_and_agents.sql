-- Grants belong to a person, conversations may be opened by a call of another one, definitions of foreign
-- tools are pinned, and people have keys and prompts of their own.

ALTER TABLE conversations ADD COLUMN parent TEXT REFERENCES conversations ON DELETE CASCADE;
ALTER TABLE conversations ADD COLUMN call TEXT;
CREATE INDEX conversations_by_parent ON conversations (parent) WHERE parent IS NOT NULL;

ALTER TABLE grants ADD COLUMN user TEXT;
ALTER TABLE grants ADD COLUMN workspace TEXT;

CREATE TABLE pins (
  user  TEXT NOT NULL,
  tool  TEXT NOT NULL,
  seal  TEXT NOT NULL,
  PRIMARY KEY (user, tool)
) WITHOUT ROWID;

CREATE TABLE people (
  name     TEXT PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,
  created  REAL NOT NULL
);

CREATE TABLE prompts (
  user  TEXT NOT NULL,
  name  TEXT NOT NULL,
  text  TEXT NOT NULL,
  PRIMARY KEY (user, name)
) WITHOUT ROWID;
