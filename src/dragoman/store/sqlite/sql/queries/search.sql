-- The searchable texts, and their index.

-- name: add_text
INSERT INTO texts (message, text) VALUES (:message, :text);

-- name: add_text_of_call
INSERT INTO texts (message, text)
SELECT m.seq, :text FROM calls c JOIN messages m ON m.id = c.message WHERE c.id = :id;

-- name: indexed_upto
SELECT upto FROM texts_indexed;

-- name: texts_to_index
SELECT id, length(text) AS size FROM texts WHERE id > (SELECT upto FROM texts_indexed) ORDER BY id LIMIT :limit;

-- name: index_texts
INSERT INTO text_index (rowid, text)
SELECT id, text FROM texts WHERE id > (SELECT upto FROM texts_indexed) AND id <= :last;

-- name: set_indexed
UPDATE texts_indexed SET upto = :last;

-- name: left_texts
SELECT id FROM texts WHERE message IS NULL LIMIT 1;

-- name: drop_texts
-- Texts of messages that were deleted before they were in the index.
DELETE FROM texts WHERE id IN (
  SELECT id FROM texts WHERE message IS NULL AND id > (SELECT upto FROM texts_indexed) LIMIT :limit);

-- name: texts_to_forget
-- Texts of messages that were deleted later: their words must be removed from the index.
SELECT id, length(text) AS size FROM texts WHERE message IS NULL AND id <= (SELECT upto FROM texts_indexed)
ORDER BY id LIMIT :limit;

-- name: unindex_texts
INSERT INTO text_index (text_index, rowid, text)
SELECT 'delete', id, text FROM texts WHERE message IS NULL AND id <= :last;

-- name: forget_texts
DELETE FROM texts WHERE message IS NULL AND id <= :last;

-- name: total_changes
SELECT total_changes();

-- name: merge_index
INSERT INTO text_index (text_index, rank) VALUES ('merge', :pages);

-- name: search_index
-- Texts with these trigrams, newest first.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM (SELECT rowid FROM text_index WHERE text_index MATCH :query ORDER BY rowid DESC) i
  CROSS JOIN texts t ON t.id = i.rowid
  CROSS JOIN messages m ON m.seq = t.message
  CROSS JOIN conversations c ON c.id = m.conversation
WHERE c.deleted = 0 AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
ORDER BY i.rowid DESC;

-- name: scan_texts
-- Texts after a given one, newest first: those not yet in the index, or all if every word is too short for it. `part`
-- is in lower case and must occur in the text. It can be empty.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM texts t CROSS JOIN messages m ON m.seq = t.message CROSS JOIN conversations c ON c.id = m.conversation
WHERE t.id > max(:after, (SELECT max(id) FROM texts) - :scanned) AND instr(lower(t.text), :part)
  AND c.deleted = 0 AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
ORDER BY t.id DESC;

-- name: own_messages
-- The number of a user's texts, counted up to a limit.
SELECT count(*) AS count FROM (
  SELECT 1 FROM conversations c CROSS JOIN messages m ON m.conversation = c.id
  WHERE c.deleted = 0 AND coalesce(c."user", 'local') = :user LIMIT :limit);

-- name: scan_own_texts
-- All texts of one user, newest first.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM conversations c CROSS JOIN messages m ON m.conversation = c.id CROSS JOIN texts t ON t.message = m.seq
WHERE c.deleted = 0 AND coalesce(c."user", 'local') = :user AND instr(lower(t.text), :part)
ORDER BY t.id DESC;

-- name: scan_shared_texts
-- All texts in conversations that are shared with a user, newest first.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM members s CROSS JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || ''
  CROSS JOIN messages m ON m.conversation = c.id CROSS JOIN texts t ON t.message = m.seq
WHERE s.user = :user AND c.deleted = 0 AND instr(lower(t.text), :part)
ORDER BY t.id DESC;

-- name: shared_titles
SELECT c.id, c.title FROM members s CROSS JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || ''
WHERE s.user = :user AND c.title IS NOT NULL AND c.deleted = 0 ORDER BY c.updated DESC, c.id;

-- name: titles
SELECT id, title FROM conversations
WHERE title IS NOT NULL AND deleted = 0 AND (:user IS NULL OR coalesce("user", 'local') = :user)
ORDER BY updated DESC, id LIMIT :scanned;
