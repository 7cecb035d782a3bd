-- Turns, their facts, their events, and the queue.

-- name: add_turn
INSERT INTO turns (id, conversation, message, state, owner, epoch, created, sender)
VALUES (:id, :conversation, :message, :state, :owner, 1, :created, :sender);

-- name: take_send_key
-- Finds no row if another send has taken the key since then: this send joins the turn of that one.
INSERT INTO send_keys ("user", name, sum, turn, created) VALUES (:user, :name, :sum, :turn, :at)
ON CONFLICT ("user", name) DO UPDATE SET sum = excluded.sum, turn = excluded.turn, created = excluded.created
WHERE send_keys.created < :since RETURNING turn;

-- name: send_key
SELECT sum, turn, created FROM send_keys WHERE "user" = :user AND name = :name;

-- name: turn
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns WHERE id = :id;

-- name: turn_of_call
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created, t.sender
FROM turns t JOIN calls c ON c.turn = t.id WHERE c.id = :id;

-- name: live_turns
-- The turns that a starting process checks: their process can be gone.
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns WHERE live = 1
ORDER BY created;

-- name: moving_turns
-- Excludes turns that only wait for a user: there are never more of the others than nodes can run. A question that a
-- tool asks while it runs dies with its process, so such a turn does not only wait.
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created, t.sender
FROM turns t WHERE t.live = 1 AND t.state <> 'waiting'
UNION
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created, t.sender
FROM signals s JOIN turns t ON t.id = s.turn WHERE s.kind <> 'follow' AND s.kind <> 'steer' AND t.live = 1
UNION
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created, t.sender
FROM calls k CROSS JOIN questions q CROSS JOIN turns t
WHERE k.state = 'running' AND q.call = k.id AND q.open = 1 AND t.id = q.turn AND t.live = 1
ORDER BY created;

-- name: moving_turns_of_people
-- Excludes waiting turns, and turns of tasks, which belong to another turn.
SELECT t.id, t.conversation, t.message, t.state, t.live, t.steerable, t.epoch, t.owner, t.created, t.sender
FROM turns t WHERE t.live = 1 AND t.state <> 'waiting'
  AND (SELECT c.parent FROM conversations c WHERE c.id = t.conversation) IS NULL ORDER BY t.created;

-- name: calls_that_go_on
-- For turns with unfinished tasks: the calls that are neither settled nor wait for a user, and their tasks.
SELECT t.id AS turn, i.id AS task, i.state AS task_state
FROM turns t JOIN messages m ON m.conversation = t.conversation AND m.turn = t.id JOIN calls k ON k.message = m.id
LEFT JOIN (turns i JOIN conversations c ON c.id = i.conversation AND i.live = 1) ON c.parent = t.conversation AND c.call = k.id
WHERE t.live = 1 AND t.state <> 'waiting' AND t.state = 'tool_call' AND k.state IN ('pending', 'running')
  AND EXISTS (SELECT 1 FROM conversations o JOIN turns g ON g.conversation = o.id AND g.live = 1 WHERE o.parent = t.conversation)
  AND NOT EXISTS (SELECT 1 FROM questions q WHERE q.turn = t.id AND q.call = k.id AND q.open = 1);

-- name: live_turns_of
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE live = 1 AND owner = :owner ORDER BY created;

-- name: live_turns_in
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE live = 1 AND conversation = :conversation ORDER BY created;

-- name: live_turn_at
-- The running turn that a message belongs to, or that the message started: its branch is busy.
SELECT t.id FROM turns t WHERE t.live = 1 AND t.conversation = :conversation
  AND (t.message = :message OR t.id = (SELECT turn FROM messages WHERE id = :message));

-- name: turns_of_conversation
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE conversation = :conversation ORDER BY created, id;

-- name: rate
INSERT INTO ratings (turn, "user", value, note, at) VALUES (:id, :user, :value, :note, :at)
ON CONFLICT (turn, "user") DO UPDATE SET value = :value, note = :note, at = :at;

-- name: remove_rating
DELETE FROM ratings WHERE turn = :id AND "user" = :user;

-- name: ratings
SELECT r.turn, r."user", r.value, r.note, r.at FROM ratings r
JOIN turns t ON t.id = r.turn JOIN conversations c ON c.id = t.conversation
WHERE c.deleted = 0 ORDER BY r.at, r.turn;

-- name: ratings_of_conversation
SELECT r.turn, r."user", r.value, r.note, r.at FROM turns t JOIN ratings r ON r.turn = t.id
WHERE t.conversation = :conversation ORDER BY r.at, r.turn;

-- name: claim_turn
-- A new owner: from now on, writes of an old owner are refused.
UPDATE turns SET owner = :owner, epoch = epoch + 1 WHERE id = :id AND live = 1 AND epoch = :epoch
RETURNING epoch;

-- name: release_turn
UPDATE turns SET owner = NULL WHERE id = :id AND epoch = :epoch;

-- name: move_turn
-- Finds no row if this process no longer has the epoch, or if an earlier fact was not written.
UPDATE turns SET state = :state, facts = facts + :count
WHERE id = :id AND epoch = :epoch AND facts = :before;

-- name: shut_turn
-- The turn accepts no more steering messages.
UPDATE turns SET steerable = 0 WHERE id = :id;

-- name: end_turn
UPDATE turns SET live = 0 WHERE id = :id;

-- name: close_turn
-- No process can complete the turn from its facts, so it ends here.
UPDATE turns SET live = 0, steerable = 0, state = 'cancelled', owner = NULL, epoch = epoch + 1 WHERE id = :id;

-- name: add_fact
INSERT INTO facts (turn, seq, epoch, body) VALUES (:turn, :seq, :epoch, :body);

-- name: facts
-- Includes the expected number of facts, to detect a missing one.
SELECT f.seq, f.body, t.facts AS count
FROM turns t LEFT JOIN facts f ON f.turn = t.id WHERE t.id = :turn ORDER BY f.seq;

-- ── events ───────────────────────────────────────────────────────────────────────────────────────

-- name: drop_events
DELETE FROM events WHERE turn = :turn;

-- name: turns_with_ended_events
SELECT t.id, t.owner FROM turns t WHERE t.live = 0 AND t.id IN (SELECT DISTINCT turn FROM events);

-- ── the queue ────────────────────────────────────────────────────────────────────────────────────

-- name: enqueue
INSERT INTO queue (turn, after, conversation, body, sender) VALUES (:turn, :after, :conversation, :body, :sender);

-- name: queue
-- Turns that can begin: the turn they wait for has ended.
SELECT q.turn, q.conversation, q.body, q.after, q.sender FROM queue q JOIN turns t ON t.id = q.after
WHERE t.live = 0 AND (:conversation IS NULL OR q.conversation = :conversation) ORDER BY q.seq;

-- name: line_at
-- The ended turn at a message for which other turns still wait.
SELECT q.after AS id FROM queue q WHERE q.conversation = :conversation
  AND q.after IN (
    SELECT turn FROM messages WHERE id = :message
    UNION ALL SELECT id FROM turns WHERE conversation = :conversation AND message = :message)
LIMIT 1;

-- name: queued
SELECT turn, conversation, body, after, sender FROM queue
WHERE (:turn IS NULL OR turn = :turn) AND (:conversation IS NULL OR conversation = :conversation) ORDER BY seq;

-- name: change_queued
UPDATE queue SET body = :body WHERE turn = :turn;

-- name: place_in_line
-- The parent of a queued message: the leaf, if it has grown from the turn that the message waited for, else the end
-- of that turn.
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
SELECT CASE WHEN (SELECT id FROM waited) IN (SELECT id FROM path) THEN (SELECT leaf FROM conversations WHERE id = :conversation)
  ELSE (SELECT id FROM waited) END AS id;

-- name: requeue
-- The rest of a queue keeps its order and waits for the turn that has begun.
UPDATE queue SET after = :turn WHERE after = :after;

-- name: dequeue
DELETE FROM queue WHERE turn = :turn;
