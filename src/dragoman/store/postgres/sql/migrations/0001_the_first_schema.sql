-- The tables, as in SQLite but for its own kinds of columns; and what tells other processes of a write.

CREATE TABLE conversations (
  id        TEXT PRIMARY KEY,
  title     TEXT,
  leaf      TEXT,
  "user"    TEXT,
  settings  TEXT NOT NULL DEFAULT '{}',
  usage     TEXT NOT NULL DEFAULT '{}',
  revision  BIGINT NOT NULL DEFAULT 0,    -- grows with every change of its messages and calls
  created   DOUBLE PRECISION NOT NULL,
  updated   DOUBLE PRECISION NOT NULL,
  parent    TEXT REFERENCES conversations ON DELETE CASCADE,    -- of a sub-conversation: whose call opened it
  call      TEXT,                                               -- and which
  deleted   BIGINT NOT NULL DEFAULT 0                          -- nobody sees it any more; its rows are being removed
);
CREATE INDEX conversations_deleted ON conversations (id) WHERE deleted = 1;
CREATE INDEX conversations_by_parent ON conversations (parent) WHERE parent IS NOT NULL;
CREATE INDEX conversations_by_update ON conversations (updated DESC, id);

CREATE TABLE messages (
  seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  parent        TEXT REFERENCES messages (id),
  turn          TEXT,
  role          TEXT NOT NULL,
  body          TEXT NOT NULL              -- the message; its calls are rows of their own
);
CREATE INDEX messages_of_conversation ON messages (conversation, seq);
CREATE INDEX messages_by_parent ON messages (parent);

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
  live          BIGINT NOT NULL DEFAULT 1,
  steerable     BIGINT NOT NULL DEFAULT 1,
  epoch         BIGINT NOT NULL DEFAULT 0,
  facts         BIGINT NOT NULL DEFAULT 1,    -- how many there are: the next one has this number plus one
  owner         TEXT,
  created       DOUBLE PRECISION NOT NULL
);
CREATE INDEX turns_alive ON turns (conversation) WHERE live = 1;
CREATE INDEX turns_of_conversation ON turns (conversation, created);
CREATE INDEX turns_of_message ON turns (message);

CREATE TABLE facts (
  turn   TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq    BIGINT NOT NULL,
  epoch  BIGINT NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
);

CREATE TABLE questions (
  seq           BIGINT GENERATED ALWAYS AS IDENTITY,
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  turn          TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  call          TEXT NOT NULL,
  open          BIGINT NOT NULL DEFAULT 1,
  body          TEXT NOT NULL
);
CREATE INDEX questions_open ON questions (conversation) WHERE open = 1;
CREATE INDEX questions_of_conversation ON questions (conversation);
CREATE INDEX questions_of_turn ON questions (turn);

-- What turns publish while they run, for followers in other processes. Nothing depends on it.
CREATE TABLE events (
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq   BIGINT NOT NULL,
  body  TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
);

-- What came in for a turn and is not yet among its facts: answers, results, steering, cancel, followers.
CREATE TABLE signals (
  seq   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL
);
CREATE INDEX signals_of_turn ON signals (turn, seq);

-- Turns that begin when the one before them is over.
CREATE TABLE queue (
  seq           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  turn          TEXT NOT NULL UNIQUE,
  after         TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  body          TEXT NOT NULL
);
CREATE INDEX queue_by_after ON queue (after);
CREATE INDEX queue_of_conversation ON queue (conversation);

CREATE TABLE grants (
  id            TEXT PRIMARY KEY,
  conversation  TEXT REFERENCES conversations ON DELETE CASCADE,
  permission    TEXT NOT NULL,
  pattern       TEXT NOT NULL,
  action        TEXT NOT NULL,
  created       DOUBLE PRECISION NOT NULL,
  "user"        TEXT,
  workspace     TEXT,
  expires       DOUBLE PRECISION
);
CREATE INDEX grants_of_conversation ON grants (conversation);

-- How a foreign tool described itself when it was last allowed to run.
CREATE TABLE pins (
  "user"  TEXT NOT NULL,
  tool  TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  PRIMARY KEY ("user", tool)
);

-- Who may use a server, and the hash of the key they show.
CREATE TABLE people (
  name     TEXT PRIMARY KEY,
  key      TEXT NOT NULL UNIQUE,
  created  DOUBLE PRECISION NOT NULL
);

CREATE TABLE prompts (
  "user"  TEXT NOT NULL,
  name  TEXT NOT NULL,
  text  TEXT NOT NULL,
  PRIMARY KEY ("user", name)
);

-- Which row mentions, or once mentioned, which blob. Goes with the conversation.
CREATE TABLE blob_references (
  blob          TEXT NOT NULL,
  noun          TEXT NOT NULL,             -- message, call, question, queue or signal
  owner         TEXT NOT NULL,             -- its id; of what is queued or a signal, the turn's
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  PRIMARY KEY (blob, noun, owner)
);
CREATE INDEX blob_references_of_conversation ON blob_references (conversation);

-- Who uploaded what: theirs to see, until a message of theirs holds it.
CREATE TABLE uploads (
  blob     TEXT NOT NULL,
  "user"     TEXT NOT NULL,
  created  DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (blob, "user")
);

-- Blobs of deleted conversations whose bytes are still to be removed.
CREATE TABLE unwanted_blobs (blob TEXT PRIMARY KEY);

-- What can be found: the text of messages, and tool, arguments and result of calls.
CREATE TABLE texts (
  id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message  BIGINT NOT NULL REFERENCES messages (seq) ON DELETE CASCADE,
  text     TEXT NOT NULL
);
CREATE INDEX texts_of_message ON texts (message);

-- Attachments and long outputs, where the database holds them itself.
CREATE TABLE blobs (
  key   TEXT PRIMARY KEY,
  put   DOUBLE PRECISION NOT NULL,         -- when somebody last wanted it here
  data  BYTEA NOT NULL
);
ALTER TABLE blobs ALTER COLUMN data SET STORAGE EXTERNAL;    -- pictures and sound are packed already

-- What all servers sign with, so that who has signed in at one is known to all.
CREATE TABLE secrets (
  name   TEXT PRIMARY KEY,
  value  BYTEA NOT NULL
);

-- Who runs turns: a lock that dies with its session, and when it was last heard of, by the database's clock.
CREATE TABLE owners (
  name  TEXT PRIMARY KEY,
  lock  BIGINT NOT NULL,
  beat  DOUBLE PRECISION NOT NULL
);

-- What is no JSON is taken for nothing: one damaged row must not spoil a whole list.
CREATE FUNCTION json_or_empty(body TEXT) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN body::json;
EXCEPTION WHEN others THEN
  RETURN '{}';
END $$;

CREATE FUNCTION announce() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify(TG_TABLE_SCHEMA, '');
  RETURN NULL;
END $$;
CREATE TRIGGER announced AFTER INSERT OR DELETE OR UPDATE OF title, settings, deleted ON conversations
  FOR EACH STATEMENT EXECUTE FUNCTION announce();
CREATE TRIGGER announced AFTER INSERT OR UPDATE OF live, owner ON turns FOR EACH STATEMENT EXECUTE FUNCTION announce();
CREATE TRIGGER announced AFTER INSERT ON signals FOR EACH STATEMENT EXECUTE FUNCTION announce();
CREATE TRIGGER announced AFTER INSERT OR UPDATE ON queue FOR EACH STATEMENT EXECUTE FUNCTION announce();
CREATE TRIGGER announced AFTER INSERT OR DELETE ON grants FOR EACH STATEMENT EXECUTE FUNCTION announce();
