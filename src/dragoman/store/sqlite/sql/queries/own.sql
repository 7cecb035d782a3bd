-- What SQLite says in words of its own.

-- name: checkpoint
-- As far as it goes without anybody having to wait.
PRAGMA wal_checkpoint(PASSIVE);

-- name: forget_unwanted
-- They are gone, or somebody mentions them again.
DELETE FROM unwanted_blobs WHERE blob IN (SELECT value FROM json_each(:blobs));

-- name: unmentioned_blobs
-- Of these, those that no row mentions: uploads that no message came for.
SELECT value AS blob FROM json_each(:blobs) WHERE NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob = value);

-- name: epochs
SELECT id, epoch FROM turns WHERE id IN (SELECT value FROM json_each(:turns));

-- name: events
-- Of each turn those after a number of its own.
SELECT e.turn, e.seq, e.body FROM json_each(:after) c JOIN events e ON e.turn = c.key AND e.seq > c.value
ORDER BY e.turn, e.seq LIMIT :limit;

-- name: revisions
SELECT id, revision FROM conversations WHERE id IN (SELECT value FROM json_each(:ids)) AND deleted = 0;

-- name: busy_conversations
-- What the list shows beside a conversation: whether a turn is alive in it, and how much waits for a person.
SELECT c.value AS id,
  EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.value AND t.live = 1) AS live,
  (SELECT count(*) FROM questions q WHERE q.conversation = c.value AND q.open = 1) AS waiting
FROM json_each(:ids) c;

-- name: replies
-- What each reply of a person's conversations used, by model and day.
SELECT id, json_extract(body, '$.model') AS model, date(json_extract(body, '$.created'), 'unixepoch') AS day,
  json_extract(body, '$.usage') AS usage
FROM (
  SELECT m.id, m.seq, CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END AS body
  FROM messages m JOIN conversations c ON c.id = m.conversation
  WHERE coalesce(c."user", 'local') = :user AND c.deleted = 0)
WHERE json_extract(body, '$.usage') IS NOT NULL ORDER BY seq;

-- name: open_questions
-- What waits for a person: the approval list.
SELECT q.id, q.body FROM questions q JOIN conversations c ON c.id = q.conversation
WHERE q.open = 1 AND (:conversation IS NULL OR q.conversation = :conversation) AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
ORDER BY q.rowid;

-- name: questions_of_turn
SELECT id, body FROM questions WHERE turn = :turn ORDER BY rowid;

-- name: raw_questions
SELECT * FROM questions WHERE conversation = :id ORDER BY rowid;
