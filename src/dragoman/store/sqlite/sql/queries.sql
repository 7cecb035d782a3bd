-- Every statement the store runs, by name, with a sentence on what it is for.

-- ── conversations ────────────────────────────────────────────────────────────────────────────────

-- name: add_conversation
INSERT INTO conversations (id, title, leaf, user, settings, usage, created, updated, parent, call)
VALUES (:id, :title, :leaf, :user, :settings, :usage, :created, :updated, :parent, :call);

-- name: conversation
SELECT id, title, leaf, user, settings, usage, created, updated, parent, call, revision FROM conversations
WHERE id = :id;

-- name: conversations
-- One page of the list, the most recently used first; `updated` and `id` are the last line of the page before.
-- A conversation without a user belongs to the person at the machine, who is called local.
SELECT id, title, leaf, user, settings, usage, created, updated, parent, call, revision FROM conversations
WHERE (:user IS NULL OR coalesce(user, 'local') = :user) AND (:id IS NULL OR updated < :updated OR (updated = :updated AND id > :id))
ORDER BY updated DESC, id LIMIT :limit;

-- name: revisions
SELECT id, revision FROM conversations WHERE id IN (SELECT value FROM json_each(:ids));

-- name: set_title
UPDATE conversations SET title = :title WHERE id = :id;

-- name: set_settings
UPDATE conversations SET settings = :settings WHERE id = :id;

-- name: set_leaf
UPDATE conversations SET leaf = :leaf, updated = max(updated, :at) WHERE id = :id;

-- name: move_leaf
-- Only where the person still looks at the branch that grew.
UPDATE conversations SET leaf = :to WHERE id = :id AND leaf IS :from;

-- name: touch_conversation
-- Whoever keeps a copy of the tree sees by the revision that it is old.
UPDATE conversations SET revision = revision + 1, updated = max(updated, :at) WHERE id = :id;

-- name: set_usage
UPDATE conversations SET usage = :usage WHERE id = :id;

-- name: usage_of
SELECT usage FROM conversations WHERE id = :id;

-- name: within
-- A conversation and those that its calls opened, the innermost first.
WITH RECURSIVE inner (id, depth) AS (
  SELECT :id, 0
  UNION ALL
  SELECT c.id, inner.depth + 1 FROM inner JOIN conversations c ON c.parent = inner.id)
SELECT id FROM inner ORDER BY depth DESC;

-- name: delete_conversation
DELETE FROM conversations WHERE id = :id;

-- name: bodies
-- Everything a conversation says, to see which files it mentions.
SELECT body FROM messages WHERE conversation = :id
UNION ALL SELECT c.body FROM calls c JOIN messages m ON m.id = c.message WHERE m.conversation = :id
UNION ALL SELECT c.held FROM calls c JOIN messages m ON m.id = c.message
  WHERE m.conversation = :id AND c.held IS NOT NULL;

-- name: mentions
-- Whether anything still mentions a file.
SELECT 1 FROM messages WHERE instr(body, :key)
UNION ALL SELECT 1 FROM calls WHERE instr(body, :key) OR instr(coalesce(held, ''), :key)
UNION ALL SELECT 1 FROM queue WHERE instr(body, :key)
UNION ALL SELECT 1 FROM signals WHERE instr(body, :key) LIMIT 1;

-- name: forget_text
DELETE FROM message_text WHERE rowid IN (SELECT seq FROM messages WHERE conversation = :id);

-- name: forget_parents
-- Lets the messages of a conversation be deleted in any order.
UPDATE messages SET parent = NULL WHERE conversation = :id;

-- name: forget_turns
DELETE FROM turns WHERE conversation = :id;

-- ── messages and calls ───────────────────────────────────────────────────────────────────────────

-- name: add_message
INSERT INTO messages (id, conversation, parent, turn, role, body)
VALUES (:id, :conversation, :parent, :turn, :role, :body);

-- name: messages
SELECT body FROM messages WHERE conversation = :conversation ORDER BY seq;

-- name: message
SELECT body, conversation, turn FROM messages WHERE id = :id;

-- name: add_call
INSERT INTO calls (id, message, turn, tool, state, body) VALUES (:id, :message, :turn, :tool, :state, :body);

-- name: change_call
UPDATE calls SET tool = :tool, state = :state, body = :body, held = :held WHERE id = :id;

-- name: calls_of_conversation
SELECT c.body FROM calls c JOIN messages m ON m.id = c.message WHERE m.conversation = :conversation;

-- name: calls_of_message
SELECT body FROM calls WHERE message = :message;

-- name: call
SELECT c.body, c.held, m.conversation FROM calls c JOIN messages m ON m.id = c.message WHERE c.id = :id;

-- ── turns and facts ──────────────────────────────────────────────────────────────────────────────

-- name: add_turn
INSERT INTO turns (id, conversation, message, state, owner, epoch, created)
VALUES (:id, :conversation, :message, :state, :owner, 1, :created);

-- name: turn
SELECT id, conversation, message, state, live, steerable, epoch, owner, created FROM turns WHERE id = :id;

-- name: turn_of_call
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created
FROM turns t JOIN calls c ON c.turn = t.id WHERE c.id = :id;

-- name: live_turns
-- What a starting process looks through: turns that nobody may be running any more.
SELECT id, conversation, message, state, live, steerable, epoch, owner, created FROM turns WHERE live = 1
ORDER BY created;

-- name: live_turn_at
-- The running turn that a message belongs to, or that was started by it: its branch is busy.
SELECT t.id FROM turns t WHERE t.live = 1 AND t.conversation = :conversation
  AND (t.message = :message OR t.id = (SELECT turn FROM messages WHERE id = :message));

-- name: turns_of_conversation
SELECT id, conversation, message, state, live, steerable, epoch, owner, created FROM turns
WHERE conversation = :conversation ORDER BY created, id;

-- name: take_turn
-- A new owner: whatever an old one still wants to write is refused from here on.
UPDATE turns SET owner = :owner, epoch = epoch + 1 WHERE id = :id AND live = 1 AND epoch = :epoch
RETURNING epoch;

-- name: leave_turn
UPDATE turns SET owner = NULL WHERE id = :id AND epoch = :epoch;

-- name: move_turn
-- Finds no row when the epoch is no longer ours, or when a fact before these was not written.
UPDATE turns SET state = :state, facts = facts + :count
WHERE id = :id AND epoch = :epoch AND facts = :before;

-- name: shut_turn
-- It takes no more steering messages.
UPDATE turns SET steerable = 0 WHERE id = :id;

-- name: end_turn
UPDATE turns SET live = 0 WHERE id = :id;

-- name: add_fact
INSERT INTO facts (turn, seq, epoch, body) VALUES (:turn, :seq, :epoch, :body);

-- name: facts
SELECT body FROM facts WHERE turn = :turn ORDER BY seq;

-- ── questions ────────────────────────────────────────────────────────────────────────────────────

-- name: add_question
INSERT INTO questions (id, conversation, turn, call, body) VALUES (:id, :conversation, :turn, :call, :body);

-- name: question
SELECT body FROM questions WHERE id = :id;

-- name: open_questions
-- What waits for a person: the approval list.
SELECT q.body FROM questions q JOIN conversations c ON c.id = q.conversation
WHERE q.open = 1 AND (:conversation IS NULL OR q.conversation = :conversation) AND (:user IS NULL OR coalesce(c.user, 'local') = :user)
ORDER BY q.rowid;

-- name: questions_of_turn
SELECT body FROM questions WHERE turn = :turn ORDER BY rowid;

-- name: settle_question
-- Only the first one finds it open.
UPDATE questions SET open = 0, body = :body WHERE id = :id AND open = 1;

-- ── what comes in for a turn ─────────────────────────────────────────────────────────────────────

-- name: add_signal
INSERT INTO signals (turn, kind, body) VALUES (:turn, :kind, :body);

-- name: delivered
-- Whether a client's result for this call lies in the box already, or was taken from there.
SELECT 1 FROM signals WHERE turn = :turn AND kind = 'result' AND json_extract(body, '$.call') = :call
UNION ALL SELECT 1 FROM calls WHERE id = :call AND state <> 'running';

-- name: signals
SELECT seq, kind, body FROM signals WHERE turn = :turn ORDER BY seq;

-- name: steering
SELECT count(*) FROM signals WHERE turn = :turn AND kind = 'steer';

-- name: drop_signal
DELETE FROM signals WHERE seq = :seq;

-- name: drop_signals
DELETE FROM signals WHERE turn = :turn;

-- name: turns_with_signals
SELECT DISTINCT turn FROM signals;

-- name: enqueue
INSERT INTO queue (turn, after, conversation, body) VALUES (:turn, :after, :conversation, :body);

-- name: queue
-- Turns that may begin: the one they wait for is over.
SELECT q.turn, q.conversation, q.body, q.after FROM queue q JOIN turns t ON t.id = q.after
WHERE t.live = 0 ORDER BY q.seq;

-- name: queued
SELECT turn, conversation, body, after FROM queue
WHERE (:turn IS NULL OR turn = :turn) AND (:conversation IS NULL OR conversation = :conversation) ORDER BY seq;

-- name: place_in_line
-- Where a queued message hangs: on the leaf, if that has grown from the turn it waited for, else on that turn's end.
WITH RECURSIVE
  waited (id) AS (
    SELECT coalesce(
      (SELECT m.id FROM messages m WHERE m.conversation = t.conversation AND m.turn = t.id ORDER BY m.seq DESC LIMIT 1),
      t.message)
    FROM turns t WHERE t.id = :after),
  path (id) AS (
    SELECT leaf FROM conversations WHERE id = :conversation
    UNION ALL
    SELECT m.parent FROM path JOIN messages m ON m.id = path.id WHERE m.id <> (SELECT id FROM waited))
SELECT CASE WHEN (SELECT id FROM waited) IN path THEN (SELECT leaf FROM conversations WHERE id = :conversation)
  ELSE (SELECT id FROM waited) END AS id;

-- name: requeue
-- The rest of a queue waits for the one that has just begun.
UPDATE queue SET after = :turn WHERE after = :after;

-- name: dequeue
DELETE FROM queue WHERE turn = :turn;

-- ── grants ───────────────────────────────────────────────────────────────────────────────────────

-- name: add_grant
INSERT INTO grants (id, conversation, permission, pattern, action, created, user, workspace)
VALUES (:id, :conversation, :permission, :pattern, :action, :created, :user, :workspace);

-- name: grants
-- The rules that hold in a conversation, which are its user's; or all of a user's, or all there are.
SELECT id, conversation, permission, pattern, action, created, user, workspace FROM grants
WHERE (:conversation IS NULL OR (
    (conversation IS NULL OR conversation = :conversation)
    AND coalesce(user, 'local') = (SELECT coalesce(user, 'local') FROM conversations WHERE id = :conversation)))
  AND (:user IS NULL OR coalesce(user, 'local') = :user)
ORDER BY conversation IS NOT NULL, created, id;

-- name: revoke_grant
DELETE FROM grants WHERE id = :id;

-- ── pins, people, prompts, usage ─────────────────────────────────────────────────────────────────

-- name: pin
SELECT fingerprint FROM pins WHERE user = :user AND tool = :tool;

-- name: set_pin
INSERT INTO pins (user, tool, fingerprint) VALUES (:user, :tool, :fingerprint)
ON CONFLICT (user, tool) DO UPDATE SET fingerprint = :fingerprint;

-- name: add_person
INSERT INTO people (name, key, created) VALUES (:id, :key, :created);

-- name: person_with_key
SELECT name FROM people WHERE key = :key;

-- name: key_of_person
SELECT key FROM people WHERE name = :id;

-- name: people
SELECT name, created FROM people ORDER BY name;

-- name: remove_person
DELETE FROM people WHERE name = :id;

-- name: prompts
SELECT name, text FROM prompts WHERE user = :user ORDER BY name;

-- name: set_prompt
INSERT INTO prompts (user, name, text) VALUES (:user, :name, :text)
ON CONFLICT (user, name) DO UPDATE SET text = :text;

-- name: remove_prompt
DELETE FROM prompts WHERE user = :user AND name = :id;

-- name: replies
-- What each reply of a person's conversations used, by model and day.
SELECT json_extract(m.body, '$.model') AS model, date(json_extract(m.body, '$.created'), 'unixepoch') AS day,
  json_extract(m.body, '$.usage') AS usage
FROM messages m JOIN conversations c ON c.id = m.conversation
WHERE coalesce(c.user, 'local') = :user AND json_extract(m.body, '$.usage') IS NOT NULL
ORDER BY m.seq;

-- name: busy_conversations
-- What the list shows beside a conversation: whether a turn is alive in it, and how much waits for a person.
SELECT c.value AS id,
  EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.value AND t.live = 1) AS live,
  (SELECT count(*) FROM questions q WHERE q.conversation = c.value AND q.open = 1) AS waiting
FROM json_each(:ids) c;

-- ── search ───────────────────────────────────────────────────────────────────────────────────────

-- name: unindexed
-- Messages that came since the last search.
SELECT seq, body FROM messages WHERE seq > coalesce((SELECT max(rowid) FROM message_text), 0) ORDER BY seq;

-- name: index_text
INSERT INTO message_text (rowid, text) VALUES (:seq, :text);

-- name: search
SELECT m.id, m.conversation, c.title, snippet(message_text, 0, '«', '»', '…', 24) AS snippet
FROM message_text t JOIN messages m ON m.seq = t.rowid JOIN conversations c ON c.id = m.conversation
WHERE message_text MATCH :query AND (:user IS NULL OR coalesce(c.user, 'local') = :user)
ORDER BY rank LIMIT :limit;

-- name: search_short
-- The same where a word has one or two characters: the trigram index cannot find those.
SELECT m.id, m.conversation, c.title,
  substr(t.text, max(1, instr(lower(t.text), lower(json_extract(:words, '$[0]'))) - 40), 120) AS snippet
FROM message_text t JOIN messages m ON m.seq = t.rowid JOIN conversations c ON c.id = m.conversation
WHERE NOT EXISTS (SELECT 1 FROM json_each(:words) w WHERE instr(lower(t.text), lower(w.value)) = 0)
  AND (:user IS NULL OR coalesce(c.user, 'local') = :user)
ORDER BY m.seq DESC LIMIT :limit;
