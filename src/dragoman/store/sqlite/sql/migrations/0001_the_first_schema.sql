-- Everything there was in the beginning.

CREATE TABLE conversations (
  id        TEXT PRIMARY KEY,
  title     TEXT,
  leaf      TEXT,
  user      TEXT,
  settings  TEXT NOT NULL DEFAULT '{}',
  usage     TEXT NOT NULL DEFAULT '{}',
  revision  INTEGER NOT NULL DEFAULT 0,    -- grows with every change of its messages and calls
  created   REAL NOT NULL,
  updated   REAL NOT NULL
);
CREATE INDEX conversations_by_update ON conversations (updated DESC, id);

CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  parent        TEXT REFERENCES messages (id),
  turn          TEXT,
  role          TEXT NOT NULL,
  body          TEXT NOT NULL              -- the message; its calls are rows of their own
);
CREATE INDEX messages_of_conversation ON messages (conversation, seq);

CREATE TABLE calls (
  id        TEXT PRIMARY KEY,
  message   TEXT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  turn      TEXT,
  tool      TEXT NOT NULL,
  state     TEXT NOT NULL,
  body      TEXT NOT NULL,
  held      TEXT                           -- a result that a person has yet to release
);
CREATE INDEX calls_of_message ON calls (message);

CREATE TABLE turns (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  message       TEXT NOT NULL REFERENCES messages (id),
  state         TEXT NOT NULL,
  live          INTEGER NOT NULL DEFAULT 1,
  steerable     INTEGER NOT NULL DEFAULT 1,
  epoch         INTEGER NOT NULL DEFAULT 0,
  facts         INTEGER NOT NULL DEFAULT 1,    -- how many there are: the next one has this number plus one
  owner         TEXT,
  created       REAL NOT NULL
);
CREATE INDEX turns_alive ON turns (conversation) WHERE live = 1;
CREATE INDEX turns_of_conversation ON turns (conversation, created);

CREATE TABLE facts (
  turn   TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq    INTEGER NOT NULL,
  epoch  INTEGER NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
) WITHOUT ROWID;

CREATE TABLE questions (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  turn          TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  call          TEXT NOT NULL,
  open          INTEGER NOT NULL DEFAULT 1,
  body          TEXT NOT NULL
);
CREATE INDEX questions_open ON questions (conversation) WHERE open = 1;
CREATE INDEX questions_of_turn ON questions (turn);

-- What came in for a turn and is not yet among its facts: answers, results, steering, cancel.
CREATE TABLE letters (
  seq   INTEGER PRIMARY KEY AUTOINCREMENT,
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL
);
CREATE INDEX letters_of_turn ON letters (turn, seq);

-- Turns that begin when the one before them is over.
CREATE TABLE queue (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  turn          TEXT NOT NULL UNIQUE,
  after         TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  body          TEXT NOT NULL
);

CREATE TABLE grants (
  id            TEXT PRIMARY KEY,
  conversation  TEXT REFERENCES conversations ON DELETE CASCADE,
  permission    TEXT NOT NULL,
  pattern       TEXT NOT NULL,
  action        TEXT NOT NULL,
  created       REAL NOT NULL
);

-- Text of messages for full-text search, filled when somebody searches.
CREATE VIRTUAL TABLE message_text USING fts5 (text, tokenize = 'trigram');

CREATE TABLE schema_version (version INTEGER NOT NULL);
