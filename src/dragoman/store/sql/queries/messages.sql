-- Messages and calls.

-- name: add_message
INSERT INTO messages (id, conversation, parent, turn, role, body)
VALUES (:id, :conversation, :parent, :turn, :role, :body) RETURNING seq;

-- name: messages
SELECT id, conversation, parent, turn, role, body FROM messages WHERE conversation = :conversation ORDER BY seq;

-- name: message
SELECT id, conversation, parent, turn, role, body FROM messages WHERE id = :id;

-- name: add_call
INSERT INTO calls (id, message, turn, tool, state, body) VALUES (:id, :message, :turn, :tool, :state, :body);

-- name: add_inner_call
-- A call that a program makes belongs to the message and the turn of the program's call.
INSERT INTO calls (id, message, turn, tool, state, body)
SELECT :id, message, turn, :tool, :state, :body FROM calls WHERE id = :program;

-- name: change_call
UPDATE calls SET tool = :tool, state = :state, body = :body, held = :held WHERE id = :id;

-- name: calls_of_conversation
SELECT c.id, c.body FROM calls c JOIN messages m ON m.id = c.message WHERE m.conversation = :conversation;

-- name: calls_of_message
SELECT id, body FROM calls WHERE message = :message;

-- name: call
SELECT c.id, c.body, c.held, m.conversation FROM calls c JOIN messages m ON m.id = c.message WHERE c.id = :id;
