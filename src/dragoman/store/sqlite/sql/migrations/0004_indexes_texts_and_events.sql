-- An index for every foreign key, so that a deletion looks nothing up row by row; conversations that are
-- being deleted; texts to search in; which row mentions which blob; events for followers in other processes.

CREATE INDEX messages_by_parent ON messages (parent);
CREATE INDEX turns_of_message ON turns (message);
CREATE INDEX questions_of_conversation ON questions (conversation);
CREATE INDEX queue_by_after ON queue (after);
CREATE INDEX queue_of_conversation ON queue (conversation);
CREATE INDEX grants_of_conversation ON grants (conversation);

ALTER TABLE conversations ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversations_deleted ON conversations (id) WHERE deleted = 1;

CREATE TABLE events (
  turn  TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  seq   INTEGER NOT NULL,
  body  TEXT NOT NULL,
  PRIMARY KEY (turn, seq)
) WITHOUT ROWID;

CREATE TABLE blob_references (
  blob          TEXT NOT NULL,
  noun          TEXT NOT NULL,
  owner         TEXT NOT NULL,
  conversation  TEXT NOT NULL REFERENCES conversations ON DELETE CASCADE,
  PRIMARY KEY (blob, noun, owner)
) WITHOUT ROWID;
CREATE INDEX blob_references_of_conversation ON blob_references (conversation);
CREATE TABLE unwanted_blobs (blob TEXT PRIMARY KEY) WITHOUT ROWID;

INSERT OR IGNORE INTO blob_references (blob, noun, owner, conversation)
SELECT tree.value, noun, owner, conversation FROM (
  SELECT 'message' AS noun, id AS owner, conversation, body FROM messages
  UNION ALL SELECT 'call', c.id, m.conversation, c.body FROM calls c JOIN messages m ON m.id = c.message
  UNION ALL SELECT 'call', c.id, m.conversation, c.held FROM calls c JOIN messages m ON m.id = c.message
  UNION ALL SELECT 'question', id, conversation, body FROM questions
  UNION ALL SELECT 'queue', turn, conversation, body FROM queue
  UNION ALL SELECT 'signal', t.id, t.conversation, s.body FROM signals s JOIN turns t ON t.id = s.turn
) JOIN json_tree(CASE WHEN instr(body, '"blob":"') AND json_valid(body) THEN body ELSE '{}' END) tree
WHERE tree.key = 'blob' AND tree.type = 'text' AND length(tree.value) = 64;

CREATE TABLE texts (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  message  INTEGER REFERENCES messages (seq) ON DELETE SET NULL,
  text     TEXT NOT NULL
);
CREATE INDEX texts_of_message ON texts (message);
CREATE TABLE texts_indexed (upto INTEGER NOT NULL);
INSERT INTO texts_indexed VALUES (0);
DROP TABLE message_text;
CREATE VIRTUAL TABLE text_index USING fts5 (text, content = 'texts', content_rowid = 'id', tokenize = 'trigram', detail = 'none');
INSERT INTO text_index (text_index, rank) VALUES ('automerge', 0);
INSERT INTO text_index (text_index, rank) VALUES ('crisismerge', 1999);

INSERT INTO texts (message, text)
SELECT seq, text FROM (
  SELECT seq, (
    SELECT group_concat(json_extract(part.value, '$.text'), '')
    FROM json_each(CASE WHEN json_valid(body) THEN body ELSE '{}' END, '$.parts') part
    WHERE json_extract(part.value, '$.type') = 'text') AS text
  FROM messages
  UNION ALL
  SELECT m.seq, CASE WHEN json_valid(c.body) THEN
    c.tool || ' ' || coalesce(json_extract(c.body, '$.arguments'), '') || ' ' || coalesce(json_extract(c.body, '$.result.text'), '')
  END FROM calls c JOIN messages m ON m.id = c.message
  WHERE c.state NOT IN ('pending', 'asked', 'running', 'reviewing'))
WHERE text <> '' ORDER BY seq;
