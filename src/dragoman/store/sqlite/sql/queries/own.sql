-- Statements that only SQLite uses.

-- name: checkpoint
-- Checkpoints as far as possible without blocking another connection.
PRAGMA wal_checkpoint(PASSIVE);

-- name: pages
SELECT page_count AS count, freelist_count AS free FROM pragma_page_count, pragma_freelist_count;

-- name: give_back_page
-- Python runs only the first step of this statement, which is one page, even if it names more.
PRAGMA incremental_vacuum(1);

-- name: forget_unwanted
-- The blobs are removed, or mentioned again.
DELETE FROM unwanted_blobs WHERE blob IN (SELECT value FROM json_each(:blobs));

-- name: unmentioned_blobs
-- The given blobs that no row mentions: uploads without a message.
SELECT value AS blob FROM json_each(:blobs) WHERE NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob = value)
  AND NOT EXISTS (SELECT 1 FROM files f WHERE f.blob = value);

-- name: epochs
SELECT id, epoch FROM turns WHERE id IN (SELECT value FROM json_each(:turns));

-- name: events
-- The events of each turn after a number given for it.
SELECT e.turn, e.seq, e.body FROM json_each(:after) c JOIN events e ON e.turn = c.key AND e.seq > c.value
ORDER BY e.turn, e.seq LIMIT :limit;

-- name: put_events
INSERT INTO events (turn, seq, body)
SELECT json_extract(value, '$.turn'), json_extract(value, '$.seq'), json_extract(value, '$.body')
FROM json_each(:events) WHERE true
ON CONFLICT (turn, seq) DO UPDATE SET body = excluded.body;

-- name: turns_with_signals_for
-- Only the process that runs a turn receives its follow signals. Waiting turns have such signals, too.
SELECT turn, max(seq) AS newest, min(followed) AS only_followed FROM (
  SELECT turn, seq, 0 AS followed FROM signals WHERE kind <> 'follow'
  UNION ALL
  SELECT turn, seq, 1 FROM signals WHERE kind = 'follow' AND turn IN (SELECT value FROM json_each(:own))) s
GROUP BY turn ORDER BY turn;

-- name: revisions
SELECT id, revision FROM conversations WHERE id IN (SELECT value FROM json_each(:ids)) AND deleted = 0;

-- name: queue_marks
SELECT conversation, count(*) AS count, sum(seq) AS places, sum(size) AS size FROM (
  SELECT conversation, seq, length(body) AS size FROM queue WHERE conversation IN (SELECT value FROM json_each(:ids))
  UNION ALL
  SELECT t.conversation, s.seq, length(s.body) FROM turns t CROSS JOIN signals s ON s.turn = t.id AND s.kind = 'steer'
  WHERE t.live = 1 AND t.conversation IN (SELECT value FROM json_each(:ids)))
GROUP BY conversation;

-- name: live_turns_named
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns WHERE id IN (SELECT value FROM json_each(:ids)) AND live = 1;

-- name: list_changes
SELECT seq, conversation, owner FROM list_changes WHERE seq > :after ORDER BY seq;

-- name: last_list_change
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'list_changes'), 0) AS seq;

-- name: live_turns_among
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE live = 1 AND conversation IN (SELECT value FROM json_each(:ids)) ORDER BY created;

-- name: busy_conversations
-- What the list shows next to a conversation: whether it has a live turn, and how many approval requests wait.
SELECT c.value AS id,
  EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.value AND t.live = 1) AS live,
  (SELECT count(*) FROM questions q WHERE q.conversation = c.value AND q.open = 1) AS waiting
FROM json_each(:ids) c;

-- name: spending
-- The usage of replies by the user who pays. Reads only conversations that changed since then. Messages of turns that
-- do not exist here were copied: they were paid for where they were written.
SELECT day, person, model, agent, count(*) AS replies, sum(input) AS input, sum(output) AS output,
  sum(cached) AS cached, sum(reasoning) AS reasoning, sum(cost) AS cost,
  sum(cost IS NULL AND input + output + units > 0) AS unpriced
FROM (
  SELECT person, date(json_extract(body, '$.created'), 'unixepoch') AS day, json_extract(body, '$.created') AS created,
    json_extract(body, '$.model') AS model,
    coalesce(json_extract(first, '$.options.agent'), json_extract(first, '$.options.settings.agent')) AS agent,
    json_extract(body, '$.usage.input') AS input, json_extract(body, '$.usage.output') AS output,
    json_extract(body, '$.usage.cached') AS cached, json_extract(body, '$.usage.reasoning') AS reasoning,
    json_extract(body, '$.usage.cost') AS cost, json_extract(body, '$.usage') AS used,
    coalesce(json_extract(body, '$.usage.images'), 0) + coalesce(json_extract(body, '$.usage.seconds'), 0)
      + coalesce(json_extract(body, '$.usage.characters'), 0) AS units
  FROM (
    SELECT coalesce(t.sender, c."user", 'local') AS person, CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END AS body,
      CASE WHEN json_valid(f.body) THEN f.body ELSE '{}' END AS first
    FROM conversations c CROSS JOIN messages m ON m.conversation = c.id LEFT JOIN turns t ON t.id = m.turn LEFT JOIN facts f ON f.turn = m.turn AND f.seq = 1
    WHERE c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
      AND (:conversation IS NULL OR c.id = :conversation) AND (m.turn IS NULL OR f.turn IS NOT NULL)))
WHERE used IS NOT NULL AND created >= :since
GROUP BY day, person, model, agent ORDER BY day, person, model, agent;

-- name: spending_on_models
-- The usage of models that tools asked, in addition to chat models: each was paid for, however the call ended.
SELECT day, person, model, agent, count(*) AS replies, sum(input) AS input, sum(output) AS output,
  sum(cached) AS cached, sum(reasoning) AS reasoning, sum(cost) AS cost, sum(cost IS NULL) AS unpriced
FROM (
  SELECT person, date(json_extract(body, '$.at'), 'unixepoch') AS day, json_extract(body, '$.at') AS created,
    json_extract(body, '$.model') AS model,
    coalesce(json_extract(first, '$.options.agent'), json_extract(first, '$.options.settings.agent')) AS agent,
    json_extract(body, '$.usage.input') AS input, json_extract(body, '$.usage.output') AS output,
    json_extract(body, '$.usage.cached') AS cached, json_extract(body, '$.usage.reasoning') AS reasoning,
    json_extract(body, '$.usage.cost') AS cost
  FROM (
    SELECT coalesce(t.sender, c."user", 'local') AS person, CASE WHEN json_valid(f.body) THEN f.body ELSE '{}' END AS body,
      CASE WHEN json_valid(o.body) THEN o.body ELSE '{}' END AS first
    FROM facts f JOIN turns t ON t.id = f.turn JOIN conversations c ON c.id = t.conversation
      JOIN facts o ON o.turn = f.turn AND o.seq = 1
    WHERE instr(f.body, '"model_asked"') > 0 AND f.seq > 1
      AND c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
      AND (:conversation IS NULL OR c.id = :conversation))
  WHERE json_extract(body, '$.type') = 'model_asked')
WHERE created >= :since
GROUP BY day, person, model, agent ORDER BY day, person, model, agent;

-- name: spending_on_tools
-- Calls that ran, or were about to, by tool.
SELECT day, person, model, agent, tool, count(*) AS calls, sum(state <> 'completed') AS failed
FROM (
  SELECT person, tool, state, date(created, 'unixepoch') AS day, created, model,
    coalesce(json_extract(first, '$.options.agent'), json_extract(first, '$.options.settings.agent')) AS agent
  FROM (
    SELECT coalesce(t.sender, c."user", 'local') AS person, k.tool, k.state,
      CASE WHEN json_valid(m.body) THEN json_extract(m.body, '$.created') END AS created,
      CASE WHEN json_valid(m.body) THEN json_extract(m.body, '$.model') END AS model,
      CASE WHEN json_valid(f.body) THEN f.body ELSE '{}' END AS first
    FROM conversations c CROSS JOIN messages m ON m.conversation = c.id CROSS JOIN calls k ON k.message = m.id
      LEFT JOIN turns t ON t.id = m.turn LEFT JOIN facts f ON f.turn = m.turn AND f.seq = 1
    WHERE c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
      AND (:conversation IS NULL OR c.id = :conversation) AND (m.turn IS NULL OR f.turn IS NOT NULL)))
WHERE created >= :since
GROUP BY day, person, model, agent, tool ORDER BY day, person, model, agent, tool;

-- name: open_questions
-- The list of open approval requests.
SELECT q.id, q.body, q.rowid AS place FROM questions q JOIN conversations c ON c.id = q.conversation
WHERE q.open = 1 AND (:conversation IS NULL OR q.conversation = :conversation) AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
  AND (:after IS NULL OR q.rowid > (SELECT rowid FROM questions WHERE id = :after))
ORDER BY q.rowid LIMIT :limit;

-- name: shared_questions
-- The same in other users' conversations, for a user who can answer there.
SELECT q.id, q.body, q.rowid AS place FROM members s
  CROSS JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || '' CROSS JOIN questions q ON q.conversation = c.id
WHERE s."user" = :user AND s.role >= 2 AND c.deleted = 0 AND q.open = 1
  AND (:after IS NULL OR q.rowid > (SELECT rowid FROM questions WHERE id = :after))
ORDER BY q.rowid LIMIT :limit;

-- name: questions_of_turn
SELECT id, body FROM questions WHERE turn = :turn ORDER BY rowid;

-- name: raw_questions
SELECT * FROM questions WHERE conversation = :id ORDER BY rowid;

-- name: hold_account
-- No other connection writes during a transaction.
SELECT :account;

-- name: shared_among
SELECT DISTINCT c.id FROM conversations c JOIN members s ON s.conversation = coalesce(c.root, c.id)
WHERE c.deleted = 0 AND c.id IN (SELECT value FROM json_each(:ids));

-- name: presence
-- Users who were present since then, and possibly still are.
SELECT p.conversation, p."user", p.typing FROM presence p JOIN conversations c ON c.id = p.conversation
WHERE p.seen > :since AND c.deleted = 0 AND p.conversation IN (SELECT value FROM json_each(:ids))
  AND (coalesce(c."user", 'local') = p."user" OR EXISTS (
    SELECT 1 FROM members s WHERE s.conversation = coalesce(c.root, c.id) AND s."user" = p."user"))
ORDER BY p.conversation, p."user";
