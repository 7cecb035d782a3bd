-- A conversation as it is stored: every column of every row.

-- name: raw_conversations
SELECT * FROM conversations WHERE id = :id AND deleted = 0;

-- name: raw_messages
SELECT * FROM messages WHERE conversation = :id ORDER BY seq;

-- name: raw_calls
SELECT c.* FROM calls c JOIN messages m ON m.id = c.message WHERE m.conversation = :id ORDER BY m.seq, c.id;

-- name: raw_turns
SELECT * FROM turns WHERE conversation = :id ORDER BY created, id;

-- name: raw_facts
SELECT f.* FROM facts f JOIN turns t ON t.id = f.turn WHERE t.conversation = :id ORDER BY t.created, f.turn, f.seq;

-- name: raw_ratings
SELECT r.* FROM ratings r JOIN turns t ON t.id = r.turn WHERE t.conversation = :id ORDER BY r.turn, r."user";

-- name: raw_signals
SELECT s.* FROM signals s JOIN turns t ON t.id = s.turn WHERE t.conversation = :id ORDER BY s.seq;

-- name: raw_queue
SELECT * FROM queue WHERE conversation = :id ORDER BY seq;

-- name: raw_grants
SELECT * FROM grants WHERE conversation = :id ORDER BY created, id;

-- name: raw_members
SELECT * FROM members WHERE conversation = :id ORDER BY added, "user";
