-- Conversations that several users share: members, invitations and links, and who sent what. `root` is the
-- conversation of people that a sub-conversation belongs to: its owner and members are the root's.
ALTER TABLE conversations ADD COLUMN root TEXT;
WITH RECURSIVE below (id, root) AS (
  SELECT id, id FROM conversations WHERE parent IS NULL
  UNION ALL
  SELECT c.id, below.root FROM below JOIN conversations c ON c.parent = below.id)
UPDATE conversations SET root = below.root FROM below WHERE below.id = conversations.id AND parent IS NOT NULL;
CREATE INDEX conversations_by_root ON conversations (coalesce(root, id));

ALTER TABLE turns ADD COLUMN sender TEXT;
CREATE INDEX turns_of_sender ON turns (sender) WHERE sender IS NOT NULL;
ALTER TABLE queue ADD COLUMN sender TEXT;

CREATE TABLE members (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  "user"        TEXT NOT NULL,
  role          BIGINT NOT NULL,           -- 1 reads, 2 answers, 3 takes part
  added_by      TEXT NOT NULL,
  added         DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (conversation, "user")
);
CREATE INDEX members_of_user ON members ("user", conversation);

CREATE TABLE shares (
  id            TEXT PRIMARY KEY,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  hash          TEXT NOT NULL UNIQUE,      -- of the token, which is nowhere
  kind          TEXT NOT NULL,
  role          BIGINT NOT NULL,
  created_by    TEXT NOT NULL,
  created       DOUBLE PRECISION NOT NULL,
  expires       DOUBLE PRECISION,
  upto          TEXT,
  omits         TEXT NOT NULL,
  frozen        TEXT
);
CREATE INDEX shares_of_conversation ON shares (conversation);

CREATE UNLOGGED TABLE presence (
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  "user"        TEXT NOT NULL,
  seen          DOUBLE PRECISION NOT NULL,
  typing        DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (conversation, "user")
);

CREATE OR REPLACE FUNCTION announce_line() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  line TEXT;
BEGIN
  IF TG_TABLE_NAME = 'conversations' THEN line := NEW.id; ELSE line := NEW.conversation; END IF;
  PERFORM pg_notify(TG_TABLE_SCHEMA || '_lists', left(line || ' ' || reader, 1500))
  FROM (SELECT coalesce(c."user", 'local') AS reader FROM conversations c WHERE c.id = line
    UNION ALL
    SELECT m."user" FROM conversations c JOIN members m ON m.conversation = coalesce(c.root, c.id) WHERE c.id = line) r;
  RETURN NULL;
END $$;
CREATE FUNCTION announce_owner() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  PERFORM pg_notify(TG_TABLE_SCHEMA || '_lists', left(NEW.id || ' ' || who, 1500))
  FROM unnest(ARRAY[coalesce(OLD."user", 'local'), coalesce(NEW."user", 'local')]) AS who;
  RETURN NULL;
END $$;
CREATE TRIGGER owner_changed AFTER UPDATE OF "user" ON conversations FOR EACH ROW
  WHEN (OLD."user" IS DISTINCT FROM NEW."user") EXECUTE FUNCTION announce_owner();
CREATE FUNCTION announce_member() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  one members;
BEGIN
  IF TG_OP = 'DELETE' THEN one := OLD; ELSE one := NEW; END IF;
  PERFORM pg_notify(TG_TABLE_SCHEMA || '_lists', left(c.id || ' ' || one."user", 1500))
  FROM conversations c WHERE coalesce(c.root, c.id) = one.conversation;
  RETURN NULL;
END $$;
CREATE TRIGGER member_changed AFTER INSERT OR UPDATE OR DELETE ON members FOR EACH ROW EXECUTE FUNCTION announce_member();
