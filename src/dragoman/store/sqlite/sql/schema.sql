-- Every table of the store. A test checks that this file equals the sum of the migrations.

CREATE TABLE conversations (
  id        TEXT PRIMARY KEY,
  title     TEXT,
  leaf      TEXT,
  user      TEXT,
  settings  TEXT NOT NULL DEFAULT '{}',
  usage     TEXT NOT NULL DEFAULT '{}',
  revision  INTEGER NOT NULL DEFAULT 0,    -- grows with every change of its messages and calls
  created   REAL NOT NULL,
  updated   REAL NOT NULL,
  parent    TEXT REFERENCES conversations ON DELETE CASCADE,    -- in a sub-conversation: the conversation of the call that opened it
  call      TEXT,                                               -- and the call
  deleted   INTEGER NOT NULL DEFAULT 0,                         -- invisible; its rows are being removed
  pinned    INTEGER NOT NULL DEFAULT 0,
  archived  INTEGER NOT NULL DEFAULT 0,
  tags      TEXT NOT NULL DEFAULT '[]',
  root      TEXT                           -- in a sub-conversation: the user's conversation that it belongs to
);
CREATE INDEX conversations_by_root ON conversations (coalesce(root, id));
CREATE INDEX conversations_deleted ON conversations (id) WHERE deleted = 1;
CREATE INDEX conversations_by_parent ON conversations (parent) WHERE parent IS NOT NULL;
CREATE INDEX conversations_by_update ON conversations (updated DESC, id);

CREATE TABLE messages (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT NOT NULL UNIQUE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  parent        TEXT REFERENCES messages (id),
  turn          TEXT,
  role          TEXT NOT NULL,
  body          TEXT NOT NULL              -- the message; its calls are separate rows
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
  held      TEXT                           -- a result that a user must still release
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
  facts         INTEGER NOT NULL DEFAULT 1,    -- the number of facts: the next one has this number plus one
  owner         TEXT,
  created       REAL NOT NULL,
  sender        TEXT                       -- the user who sent its message; NULL: the owner
);
CREATE INDEX turns_of_sender ON turns (sender) WHERE sender IS NOT NULL;
CREATE INDEX turns_alive ON turns (conversation) WHERE live = 1;
CREATE INDEX turns_of_conversation ON turns (conversation, created);
CREATE INDEX turns_of_message ON turns (message);

CREATE TABLE facts (
  turn   TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq    INTEGER NOT NULL,
  epoch  INTEGER NOT NULL,
  body   TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
) WITHOUT ROWID;

-- Lets a query find the usage of models that tools asked without reading every fact.
CREATE INDEX facts_of_models ON facts (turn) WHERE instr(body, '"model_asked"') > 0 AND seq > 1;

CREATE TABLE questions (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  turn          TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  call          TEXT NOT NULL,
  open          INTEGER NOT NULL DEFAULT 1,
  body          TEXT NOT NULL
);
CREATE INDEX questions_open ON questions (conversation) WHERE open = 1;
CREATE INDEX questions_of_conversation ON questions (conversation);
CREATE INDEX questions_of_turn ON questions (turn);

-- Events of running turns, for followers in other processes. Nothing depends on them.
CREATE TABLE events (
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq   INTEGER NOT NULL,
  body  TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
) WITHOUT ROWID;

-- Input for a turn that is not yet among its facts: answers, results, steering, cancel, followers.
CREATE TABLE signals (
  seq   INTEGER PRIMARY KEY AUTOINCREMENT,
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  kind  TEXT NOT NULL,
  body  TEXT NOT NULL
);
CREATE INDEX signals_of_turn ON signals (turn, seq);

-- Turns that begin when the turn before them ends.
CREATE TABLE queue (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  turn          TEXT NOT NULL UNIQUE,
  after         TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  body          TEXT NOT NULL,
  sender        TEXT
);
CREATE INDEX queue_by_after ON queue (after);
CREATE INDEX queue_of_conversation ON queue (conversation);

CREATE TABLE grants (
  id            TEXT PRIMARY KEY,
  conversation  TEXT REFERENCES conversations ON DELETE CASCADE,
  permission    TEXT NOT NULL,
  pattern       TEXT NOT NULL,
  action        TEXT NOT NULL,
  created       REAL NOT NULL,
  user          TEXT,
  workspace     TEXT,
  expires       REAL
);
CREATE INDEX grants_of_conversation ON grants (conversation);

-- How an external tool described itself when it was last allowed to run.
CREATE TABLE pins (
  user  TEXT NOT NULL,
  tool  TEXT NOT NULL,
  fingerprint  TEXT NOT NULL,
  PRIMARY KEY (user, tool)
) WITHOUT ROWID;

-- The users of a server, and the hashes of their keys.
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

-- Which row mentions, or once mentioned, which blob. Deleted with the conversation.
CREATE TABLE blob_references (
  blob          TEXT NOT NULL,
  noun          TEXT NOT NULL,             -- message, call, question, queue or signal
  owner         TEXT NOT NULL,             -- its ID; for what is queued or a signal, the turn's
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  PRIMARY KEY (blob, noun, owner)
) WITHOUT ROWID;
CREATE INDEX blob_references_of_conversation ON blob_references (conversation);

-- Uploads by user: visible to the user even before one of their messages contains the file.
CREATE TABLE uploads (
  blob     TEXT NOT NULL,
  user     TEXT NOT NULL,
  created  REAL NOT NULL,
  PRIMARY KEY (blob, user)
) WITHOUT ROWID;

-- The spending in deleted conversations: the user has paid for them, too.
CREATE TABLE past_spending (
  day        TEXT NOT NULL,
  person     TEXT NOT NULL,
  model      TEXT NOT NULL,
  agent      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  replies    INTEGER NOT NULL,
  input      INTEGER NOT NULL,
  output     INTEGER NOT NULL,
  cached     INTEGER NOT NULL,
  reasoning  INTEGER NOT NULL,
  cost       REAL NOT NULL,
  unpriced   INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  failed     INTEGER NOT NULL,
  PRIMARY KEY (day, person, model, agent, tool)
) WITHOUT ROWID;

-- Blobs that were uploaded to a provider, and their names there, so that no process uploads one again.
CREATE TABLE provider_files (
  account  TEXT NOT NULL,
  id       TEXT NOT NULL,
  blob     TEXT NOT NULL,
  expires  REAL,
  created  REAL NOT NULL,
  PRIMARY KEY (account, id)
) WITHOUT ROWID;
CREATE INDEX provider_files_of_blob ON provider_files (blob);

-- Sessions that were signed out, by the hash of their cookie, until the cookie would have expired.
CREATE TABLE ended_sessions (
  id       TEXT PRIMARY KEY,
  expires  REAL NOT NULL
) WITHOUT ROWID;

-- Blobs of deleted conversations whose bytes must still be removed.
CREATE TABLE unwanted_blobs (blob TEXT PRIMARY KEY) WITHOUT ROWID;

-- The searchable texts: those of messages, and tool, arguments and result of calls. Rows never change, except that a
-- deleted message leaves them behind until their words are out of the index.
CREATE TABLE texts (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  message  INTEGER REFERENCES messages (seq) ON DELETE SET NULL,
  text     TEXT NOT NULL
);
CREATE INDEX texts_of_message ON texts (message);

-- The texts up to this one are in the index. The rest follows in small steps.
CREATE TABLE texts_indexed (upto INTEGER NOT NULL);
INSERT INTO texts_indexed VALUES (0);

-- `detail = none` halves the index: a search checks its results against the text itself. The index is merged
-- explicitly in small steps, because a merge that FTS5 starts by itself blocks writers.
CREATE VIRTUAL TABLE text_index USING fts5 (text, content = 'texts', content_rowid = 'id', tokenize = 'trigram', detail = 'none');
INSERT INTO text_index (text_index, rank) VALUES ('automerge', 0);
INSERT INTO text_index (text_index, rank) VALUES ('crisismerge', 1999);

-- The users with whom the owner of a conversation shares it.
CREATE TABLE members (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  user          TEXT NOT NULL,
  role          INTEGER NOT NULL,          -- 1 reads, 2 answers, 3 takes part
  added_by      TEXT NOT NULL,
  added         REAL NOT NULL,
  PRIMARY KEY (conversation, user)
) WITHOUT ROWID;
CREATE INDEX members_of_user ON members (user, conversation);

-- Invitations, which make one user a member, and public read-only links.
CREATE TABLE shares (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  hash          TEXT NOT NULL UNIQUE,      -- of the token, which is not stored
  kind          TEXT NOT NULL,
  role          INTEGER NOT NULL,
  created_by    TEXT NOT NULL,
  created       REAL NOT NULL,
  expires       REAL,
  upto          TEXT,
  omits         TEXT NOT NULL,
  frozen        TEXT
);
CREATE INDEX shares_of_conversation ON shares (conversation);

-- Which user has a shared conversation open, and when they typed last. Nothing depends on it.
CREATE TABLE presence (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  user          TEXT NOT NULL,
  seen          REAL NOT NULL,
  typing        REAL NOT NULL,
  PRIMARY KEY (conversation, user)
) WITHOUT ROWID;

-- Users whose list of conversations has changed, and which row of it, for other processes. Only the last thousand
-- changes are kept: a process that has missed some reads the whole list again.
CREATE TABLE list_changes (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation  TEXT NOT NULL,
  owner         TEXT NOT NULL
);
CREATE TRIGGER list_changes_bounded AFTER INSERT ON list_changes BEGIN
  DELETE FROM list_changes WHERE seq <= NEW.seq - 1000;
END;
CREATE VIEW readers AS
  SELECT id AS conversation, coalesce(user, 'local') AS reader FROM conversations
  UNION ALL
  SELECT c.id, m.user FROM conversations c JOIN members m ON m.conversation = coalesce(c.root, c.id);
CREATE TRIGGER line_added AFTER INSERT ON conversations BEGIN
  INSERT INTO list_changes (conversation, owner) SELECT conversation, reader FROM readers WHERE conversation = NEW.id;
END;
CREATE TRIGGER line_changed AFTER UPDATE OF title, settings, pinned, archived, tags, deleted ON conversations
WHEN (OLD.title, OLD.settings, OLD.pinned, OLD.archived, OLD.tags, OLD.deleted)
  IS NOT (NEW.title, NEW.settings, NEW.pinned, NEW.archived, NEW.tags, NEW.deleted) BEGIN
  INSERT INTO list_changes (conversation, owner) SELECT conversation, reader FROM readers WHERE conversation = NEW.id;
END;
CREATE TRIGGER owner_changed AFTER UPDATE OF user ON conversations WHEN OLD.user IS NOT NEW.user BEGIN
  INSERT INTO list_changes (conversation, owner)
  VALUES (NEW.id, coalesce(OLD.user, 'local')), (NEW.id, coalesce(NEW.user, 'local'));
END;
CREATE TRIGGER turn_listed AFTER INSERT ON turns BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT conversation, reader FROM readers WHERE conversation = NEW.conversation;
END;
CREATE TRIGGER turn_unlisted AFTER UPDATE OF live ON turns BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT conversation, reader FROM readers WHERE conversation = NEW.conversation;
END;
CREATE TRIGGER question_listed AFTER INSERT ON questions BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT conversation, reader FROM readers WHERE conversation = NEW.conversation;
END;
CREATE TRIGGER question_unlisted AFTER UPDATE OF open ON questions BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT conversation, reader FROM readers WHERE conversation = NEW.conversation;
END;
CREATE TRIGGER member_listed AFTER INSERT ON members BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, NEW.user FROM conversations WHERE coalesce(root, id) = NEW.conversation || '';
END;
CREATE TRIGGER member_changed AFTER UPDATE ON members BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, NEW.user FROM conversations WHERE coalesce(root, id) = NEW.conversation || '';
END;
CREATE TRIGGER member_unlisted AFTER DELETE ON members BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, OLD.user FROM conversations WHERE coalesce(root, id) = OLD.conversation || '';
END;

-- The keys of sends that can be retried: a retry joins the turn that it repeats. Kept for a day.
CREATE TABLE send_keys (
  user     TEXT NOT NULL,
  name     TEXT NOT NULL,
  sum      TEXT NOT NULL,
  turn     TEXT NOT NULL,
  created  REAL NOT NULL,
  PRIMARY KEY (user, name)
) WITHOUT ROWID;
CREATE INDEX send_keys_by_age ON send_keys (created);

-- Models that have made a native call: their text is never parsed for calls (D6).
CREATE TABLE native_models (model TEXT PRIMARY KEY) WITHOUT ROWID;

-- Users' ratings of answers, good or bad, with a reason.
CREATE TABLE ratings (
  turn   TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  user   TEXT NOT NULL,
  value  TEXT NOT NULL,
  note   TEXT NOT NULL,
  at     REAL NOT NULL,
  PRIMARY KEY (turn, user)
) WITHOUT ROWID;

-- Accounts at an OpenID Connect provider, and the user of each. `epoch` is part of the signature of their sessions:
-- another value ends them all.
CREATE TABLE identities (
  issuer   TEXT NOT NULL,
  subject  TEXT NOT NULL,
  person   TEXT NOT NULL UNIQUE,
  epoch    TEXT NOT NULL,
  PRIMARY KEY (issuer, subject)
) WITHOUT ROWID;

-- The teams of users who sign in at a provider, by the groups that the provider named last.
CREATE TABLE team_members (
  name    TEXT NOT NULL,
  person  TEXT NOT NULL,
  PRIMARY KEY (name, person)
) WITHOUT ROWID;
CREATE INDEX team_members_by_person ON team_members (person);

-- Users who were removed. Their names are not given to other users, who would get their data.
CREATE TABLE removed_people (name TEXT PRIMARY KEY) WITHOUT ROWID;

-- Counts how often a user lost a right: servers then check the open streams again.
CREATE TABLE access (
  id        INTEGER PRIMARY KEY,
  revision  INTEGER NOT NULL
);

-- The audit log. Rows are only added, and deleted when they are older than the retention.
CREATE TABLE audit (
  seq      INTEGER PRIMARY KEY AUTOINCREMENT,
  at       REAL NOT NULL,
  person   TEXT NOT NULL,
  address  TEXT NOT NULL,
  action   TEXT NOT NULL,
  object   TEXT NOT NULL,
  details  TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at);

CREATE TABLE schema_version (version INTEGER NOT NULL);

-- Indexes that find a user's rows and moving turns without reading other users' rows and waiting turns.
CREATE INDEX conversations_of_user ON conversations (coalesce("user", 'local'), updated DESC, id);
CREATE INDEX grants_of_user ON grants (coalesce("user", 'local'));
CREATE INDEX turns_moving ON turns (created) WHERE live = 1 AND state <> 'waiting';
CREATE INDEX turns_owned ON turns (owner) WHERE live = 1;
CREATE INDEX signals_that_move ON signals (turn, seq) WHERE kind <> 'follow';
CREATE INDEX calls_running ON calls (id) WHERE state = 'running';
CREATE INDEX questions_of_call ON questions (call) WHERE open = 1;

-- Files that callers of OpenAI's API uploaded, to name them by their ID until they are deleted or expire.
CREATE TABLE files (
  id          TEXT PRIMARY KEY,
  "user"      TEXT NOT NULL,
  blob        TEXT NOT NULL,
  name        TEXT NOT NULL,
  media_type  TEXT NOT NULL,
  size        INTEGER NOT NULL,
  purpose     TEXT NOT NULL,
  created     REAL NOT NULL,
  expires     REAL
) WITHOUT ROWID;
CREATE INDEX files_of_user ON files ("user", created, id);
CREATE INDEX files_of_blob ON files (blob);
CREATE INDEX files_by_expiry ON files (expires) WHERE expires IS NOT NULL;
