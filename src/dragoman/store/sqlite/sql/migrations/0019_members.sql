-- Conversations that several users share: members, invitations and links, and who sent what. `root` is the
-- conversation of people that a sub-conversation belongs to: its owner and members are the root's.
ALTER TABLE conversations ADD COLUMN root TEXT;
WITH RECURSIVE below (id, root) AS (
  SELECT id, id FROM conversations WHERE parent IS NULL
  UNION ALL
  SELECT c.id, below.root FROM below JOIN conversations c ON c.parent = below.id)
UPDATE conversations SET root = (SELECT below.root FROM below WHERE below.id = conversations.id)
WHERE parent IS NOT NULL;
CREATE INDEX conversations_by_root ON conversations (coalesce(root, id));

ALTER TABLE turns ADD COLUMN sender TEXT;
CREATE INDEX turns_of_sender ON turns (sender) WHERE sender IS NOT NULL;
ALTER TABLE queue ADD COLUMN sender TEXT;

CREATE TABLE members (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  user          TEXT NOT NULL,
  role          INTEGER NOT NULL,          -- 1 reads, 2 answers, 3 takes part
  added_by      TEXT NOT NULL,
  added         REAL NOT NULL,
  PRIMARY KEY (conversation, user)
) WITHOUT ROWID;
CREATE INDEX members_of_user ON members (user, conversation);

CREATE TABLE shares (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  hash          TEXT NOT NULL UNIQUE,      -- of the token, which is nowhere
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

CREATE TABLE presence (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  user          TEXT NOT NULL,
  seen          REAL NOT NULL,
  typing        REAL NOT NULL,
  PRIMARY KEY (conversation, user)
) WITHOUT ROWID;

DROP TRIGGER line_added;
DROP TRIGGER line_changed;
DROP TRIGGER turn_listed;
DROP TRIGGER turn_unlisted;
DROP TRIGGER question_listed;
DROP TRIGGER question_unlisted;
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
