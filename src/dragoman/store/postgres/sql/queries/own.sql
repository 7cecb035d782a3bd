-- Statements that only PostgreSQL uses.

-- name: epochs
-- No process can claim one of these turns before the transaction ends: events of a new owner come after it.
SELECT id, epoch FROM turns WHERE id = ANY (ARRAY(SELECT json_array_elements_text(:turns::text::json))) ORDER BY id FOR SHARE;

-- name: events
-- The events of each turn after a number given for it, found by the index: a table that is constantly filled and
-- emptied has no reliable statistics.
SELECT e.turn, e.seq, e.body FROM json_each_text(:after::text::json) AS c (turn, after) CROSS JOIN LATERAL (
  SELECT turn, seq, body FROM events WHERE turn = c.turn AND seq > c.after::bigint ORDER BY seq LIMIT :limit) e
ORDER BY e.turn, e.seq LIMIT :limit;

-- name: put_events
-- All events of a moment in one statement: a process that changes one of these turns waits until they are written.
INSERT INTO events (turn, seq, body)
SELECT e.turn, e.seq, e.body FROM json_to_recordset(:events::text::json) AS e (turn TEXT, seq BIGINT, body TEXT)
ON CONFLICT (turn, seq) DO UPDATE SET body = excluded.body;

-- name: announce
SELECT pg_notify(:channel, '');

-- name: turns_with_signals_for
-- Only the process that runs a turn receives its follow signals. Waiting turns have such signals, too.
SELECT turn, max(seq) AS newest, min(followed) AS only_followed FROM (
  SELECT turn, seq, 0 AS followed FROM signals WHERE kind <> 'follow'
  UNION ALL
  SELECT f.turn, f.seq, 1 FROM json_array_elements_text(:own::text::json) AS o (turn)
    CROSS JOIN LATERAL (SELECT turn, seq FROM signals WHERE turn = o.turn AND kind = 'follow' OFFSET 0) f) s
GROUP BY turn ORDER BY turn;

-- name: revisions
SELECT id, revision FROM conversations
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(:ids::text::json))) AND deleted = 0;

-- name: queue_marks
SELECT conversation, count(*) AS count, sum(seq) AS places, sum(size) AS size FROM (
  SELECT conversation, seq, length(body) AS size FROM queue
  WHERE conversation = ANY (ARRAY(SELECT json_array_elements_text(:ids::text::json)))
  UNION ALL
  SELECT t.conversation, s.seq, length(s.body) FROM turns t JOIN signals s ON s.turn = t.id AND s.kind = 'steer'
  WHERE t.live = 1 AND t.conversation = ANY (ARRAY(SELECT json_array_elements_text(:ids::text::json)))) q
GROUP BY conversation;

-- name: live_turns_named
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE id = ANY (ARRAY(SELECT json_array_elements_text(:ids::text::json))) AND live = 1;

-- name: live_turns_among
SELECT id, conversation, message, state, live, steerable, epoch, owner, created, sender FROM turns
WHERE live = 1 AND conversation = ANY (ARRAY(SELECT json_array_elements_text(:ids::text::json))) ORDER BY created;

-- name: busy_conversations
-- What the list shows next to a conversation: whether it has a live turn, and how many approval requests wait.
SELECT c.id,
  (SELECT 1 FROM turns t WHERE t.conversation = c.id AND t.live = 1 LIMIT 1) IS NOT NULL AS live,
  (SELECT count(*) FROM questions q WHERE q.conversation = c.id AND q.open = 1) AS waiting
FROM json_array_elements_text(:ids::text::json) AS c (id);

-- name: spending
-- The usage of replies by the user who pays. Reads only conversations that changed since then. Messages of turns that
-- do not exist here were copied: they were paid for where they were written.
SELECT day, person, model, agent, count(*) AS replies, sum(input) AS input, sum(output) AS output,
  sum(cached) AS cached, sum(reasoning) AS reasoning, sum(cost) AS cost,
  count(*) FILTER (WHERE cost IS NULL AND input + output + units > 0) AS unpriced
FROM (
  SELECT person, created, model, agent,
    to_char(to_timestamp(created) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
    CASE WHEN json_typeof(usage -> 'input') = 'number' THEN (usage ->> 'input')::double precision END AS input,
    CASE WHEN json_typeof(usage -> 'output') = 'number' THEN (usage ->> 'output')::double precision END AS output,
    CASE WHEN json_typeof(usage -> 'cached') = 'number' THEN (usage ->> 'cached')::double precision END AS cached,
    CASE WHEN json_typeof(usage -> 'reasoning') = 'number' THEN (usage ->> 'reasoning')::double precision END AS reasoning,
    CASE WHEN json_typeof(usage -> 'cost') = 'number' THEN (usage ->> 'cost')::double precision END AS cost,
    CASE WHEN json_typeof(usage -> 'images') = 'number' THEN (usage ->> 'images')::double precision ELSE 0 END
      + CASE WHEN json_typeof(usage -> 'seconds') = 'number' THEN (usage ->> 'seconds')::double precision ELSE 0 END
      + CASE WHEN json_typeof(usage -> 'characters') = 'number' THEN (usage ->> 'characters')::double precision ELSE 0 END AS units
  FROM (
    SELECT coalesce(t.sender, c."user", 'local') AS person, b.body ->> 'model' AS model, b.body -> 'usage' AS usage,
      (b.body ->> 'created')::double precision AS created,
      coalesce(f.body #>> '{options,agent}', f.body #>> '{options,settings,agent}') AS agent
    FROM conversations c
      JOIN messages m ON m.conversation = c.id
      CROSS JOIN LATERAL (SELECT json_or_empty(m.body) AS body) b
      LEFT JOIN turns t ON t.id = m.turn
      LEFT JOIN LATERAL (SELECT json_or_empty(body) AS body FROM facts WHERE turn = m.turn AND seq = 1) f ON true
    WHERE c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
      AND (:conversation IS NULL OR c.id = :conversation) AND (m.turn IS NULL OR f.body IS NOT NULL)) replies
  WHERE json_typeof(usage) = 'object' AND created >= :since) used
GROUP BY day, person, model, agent ORDER BY day, person, model, agent;

-- name: spending_on_models
-- The usage of models that tools asked, in addition to chat models: each was paid for, however the call ended.
SELECT day, person, model, agent, count(*) AS replies, sum(input) AS input, sum(output) AS output,
  sum(cached) AS cached, sum(reasoning) AS reasoning, sum(cost) AS cost,
  count(*) FILTER (WHERE cost IS NULL) AS unpriced
FROM (
  SELECT coalesce(t.sender, c."user", 'local') AS person, b.body ->> 'model' AS model,
    (b.body ->> 'at')::double precision AS created,
    to_char(to_timestamp((b.body ->> 'at')::double precision) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day,
    coalesce(o.body #>> '{options,agent}', o.body #>> '{options,settings,agent}') AS agent,
    (b.body #>> '{usage,input}')::double precision AS input, (b.body #>> '{usage,output}')::double precision AS output,
    (b.body #>> '{usage,cached}')::double precision AS cached,
    (b.body #>> '{usage,reasoning}')::double precision AS reasoning,
    (b.body #>> '{usage,cost}')::double precision AS cost
  FROM facts f
    JOIN turns t ON t.id = f.turn
    JOIN conversations c ON c.id = t.conversation
    CROSS JOIN LATERAL (SELECT json_or_empty(f.body) AS body) b
    CROSS JOIN LATERAL (SELECT json_or_empty(body) AS body FROM facts WHERE turn = f.turn AND seq = 1) o
  WHERE position('"model_asked"' IN f.body) > 0 AND f.seq > 1 AND b.body ->> 'type' = 'model_asked'
    AND c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
    AND (:conversation IS NULL OR c.id = :conversation)) asked
WHERE created >= :since
GROUP BY day, person, model, agent ORDER BY day, person, model, agent;

-- name: spending_on_tools
-- Calls that ran, or were about to, by tool.
SELECT to_char(to_timestamp(created) AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, person, model, agent, tool,
  count(*) AS calls, count(*) FILTER (WHERE state <> 'completed') AS failed
FROM (
  SELECT coalesce(t.sender, c."user", 'local') AS person, b.body ->> 'model' AS model, k.tool, k.state,
    (b.body ->> 'created')::double precision AS created,
    coalesce(f.body #>> '{options,agent}', f.body #>> '{options,settings,agent}') AS agent
  FROM conversations c
    JOIN messages m ON m.conversation = c.id
    JOIN calls k ON k.message = m.id
    CROSS JOIN LATERAL (SELECT json_or_empty(m.body) AS body) b
    LEFT JOIN turns t ON t.id = m.turn
    LEFT JOIN LATERAL (SELECT json_or_empty(body) AS body FROM facts WHERE turn = m.turn AND seq = 1) f ON true
  WHERE c.updated >= :since AND c.deleted = 0 AND (:user IS NULL OR coalesce(t.sender, c."user", 'local') = :user)
      AND (:user IS NULL OR c.id IN (
        SELECT id FROM conversations WHERE coalesce("user", 'local') = :user AND updated >= :since
        UNION SELECT conversation FROM turns WHERE sender = :user))
      AND (:conversation IS NULL OR c.id = :conversation) AND (m.turn IS NULL OR f.body IS NOT NULL)) calls
WHERE created >= :since
GROUP BY day, person, model, agent, tool ORDER BY day, person, model, agent, tool;

-- name: open_questions
-- The list of open approval requests.
SELECT q.id, q.body, q.seq AS place FROM questions q JOIN conversations c ON c.id = q.conversation
WHERE q.open = 1 AND (:conversation IS NULL OR q.conversation = :conversation)
  AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
  AND (:after IS NULL OR q.seq > (SELECT seq FROM questions WHERE id = :after))
ORDER BY q.seq LIMIT :limit;

-- name: shared_questions
-- The same in other users' conversations, for a user who can answer there.
SELECT q.id, q.body, q.seq AS place FROM members s
  JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || '' JOIN questions q ON q.conversation = c.id
WHERE s."user" = :user AND s.role >= 2 AND c.deleted = 0 AND q.open = 1
  AND (:after IS NULL OR q.seq > (SELECT seq FROM questions WHERE id = :after))
ORDER BY q.seq LIMIT :limit;

-- name: questions_of_turn
SELECT id, body FROM questions WHERE turn = :turn ORDER BY seq;

-- name: raw_questions
SELECT * FROM questions WHERE conversation = :id ORDER BY seq;

-- name: forget_unwanted
-- The blobs are removed, or mentioned again.
DELETE FROM unwanted_blobs WHERE blob IN (SELECT json_array_elements_text(:blobs::text::json));

-- name: unmentioned_blobs
-- The given blobs that no row mentions: uploads without a message.
SELECT b.key AS blob FROM json_array_elements_text(:blobs::text::json) AS b (key)
WHERE NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob = b.key)
  AND NOT EXISTS (SELECT 1 FROM files f WHERE f.blob = b.key);

-- ── texts ────────────────────────────────────────────────────────────────────────────────────────

-- name: add_text
INSERT INTO texts (message, text) VALUES (:message, :text);

-- name: add_text_of_call
INSERT INTO texts (message, text)
SELECT m.seq, :text FROM calls c JOIN messages m ON m.id = c.message WHERE c.id = :id;

-- name: search_texts
-- Texts before a given one that contain this part, newest first.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM texts t JOIN messages m ON m.seq = t.message JOIN conversations c ON c.id = m.conversation
WHERE t.id < :before AND lower(t.text) LIKE :part
  AND (:others IS NULL OR lower(t.text) LIKE ALL (ARRAY(SELECT json_array_elements_text(:others::text::json))))
  AND c.deleted = 0 AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
ORDER BY t.id DESC LIMIT :limit;

-- name: count_texts
-- The number of texts that contain this part, counted up to a limit.
SELECT count(*) AS count FROM (SELECT 1 FROM texts WHERE lower(text) LIKE :part LIMIT :limit) c;

-- name: scan_texts
-- The same as `search_texts` without the index: for parts that occur in the first texts scanned.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM (SELECT id, message, text FROM texts WHERE id < :before ORDER BY id DESC OFFSET 0) t
  JOIN messages m ON m.seq = t.message JOIN conversations c ON c.id = m.conversation
WHERE lower(t.text) LIKE :part
  AND (:others IS NULL OR lower(t.text) LIKE ALL (ARRAY(SELECT json_array_elements_text(:others::text::json))))
  AND c.deleted = 0 AND (:user IS NULL OR coalesce(c."user", 'local') = :user)
ORDER BY t.id DESC LIMIT :limit;

-- name: own_messages
-- The number of a user's messages, counted up to a limit. Other users' messages are not read, whatever the planner
-- estimates: `OFFSET 0` forces the order that is written here.
SELECT count(*) AS count FROM (
  SELECT 1 FROM conversations c CROSS JOIN LATERAL (SELECT 1 FROM messages WHERE conversation = c.id OFFSET 0) m
  WHERE c.deleted = 0 AND coalesce(c."user", 'local') = :user LIMIT :limit) own;

-- name: search_own
-- In each conversation of one user, the newest messages that contain this part. A frequent word is found in the first
-- of them.
SELECT f.id, f.text, f.message, c.id AS conversation, c.title
FROM conversations c CROSS JOIN LATERAL (
  SELECT t.id, t.text, m.id AS message
  FROM messages m CROSS JOIN LATERAL (
    SELECT o.id, o.text FROM (SELECT id, text FROM texts WHERE message = m.seq OFFSET 0) o
    WHERE lower(o.text) LIKE :part
      AND (:others IS NULL OR lower(o.text) LIKE ALL (ARRAY(SELECT json_array_elements_text(:others::text::json))))
    ORDER BY o.id DESC LIMIT 1) t
  WHERE m.conversation = c.id ORDER BY m.seq DESC LIMIT :each) f
WHERE c.deleted = 0 AND coalesce(c."user", 'local') = :user
ORDER BY f.id DESC LIMIT :limit;

-- name: search_own_texts
-- The same as `search_texts` among the texts of one user, one after the other: for a user with few texts.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM conversations c
  CROSS JOIN LATERAL (SELECT seq, id, conversation FROM messages WHERE conversation = c.id OFFSET 0) m
  CROSS JOIN LATERAL (SELECT id, text FROM texts WHERE message = m.seq OFFSET 0) t
WHERE c.deleted = 0 AND coalesce(c."user", 'local') = :user AND t.id < :before AND lower(t.text) LIKE :part
  AND (:others IS NULL OR lower(t.text) LIKE ALL (ARRAY(SELECT json_array_elements_text(:others::text::json))))
ORDER BY t.id DESC LIMIT :limit;

-- name: search_shared_texts
-- The same in conversations that are shared with a user.
SELECT t.id, t.text, m.id AS message, m.conversation, c.title
FROM members s JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || ''
  CROSS JOIN LATERAL (SELECT seq, id, conversation FROM messages WHERE conversation = c.id OFFSET 0) m
  CROSS JOIN LATERAL (SELECT id, text FROM texts WHERE message = m.seq OFFSET 0) t
WHERE s."user" = :user AND c.deleted = 0 AND lower(t.text) LIKE :part
  AND (:others IS NULL OR lower(t.text) LIKE ALL (ARRAY(SELECT json_array_elements_text(:others::text::json))))
ORDER BY t.id DESC;

-- name: shared_titles
SELECT c.id, c.title FROM members s JOIN conversations c ON coalesce(c.root, c.id) = s.conversation || ''
WHERE s."user" = :user AND c.title IS NOT NULL AND c.deleted = 0 AND lower(c.title) LIKE :part
ORDER BY c.updated DESC, c.id LIMIT :limit;

-- name: search_titles
SELECT id, title FROM conversations
WHERE title IS NOT NULL AND deleted = 0 AND (:user IS NULL OR coalesce("user", 'local') = :user)
  AND lower(title) LIKE :part
ORDER BY updated DESC, id LIMIT :limit;

-- ── owners ───────────────────────────────────────────────────────────────────────────────────────

-- name: add_owner
INSERT INTO owners (name, lock, beat) VALUES (:name, :lock, extract(epoch FROM clock_timestamp()));

-- name: renew_owner
UPDATE owners SET beat = extract(epoch FROM clock_timestamp()) WHERE name = :name;

-- name: owner
SELECT lock, extract(epoch FROM clock_timestamp())::double precision - beat AS silent,
  extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::double precision AS uptime
FROM owners WHERE name = :name;

-- name: owners
SELECT name FROM owners;

-- name: is_unlocked
-- Whether an owner's lock is free: then its process is gone.
SELECT pg_try_advisory_xact_lock_shared(:lock) AS free;

-- name: remove_owner
DELETE FROM owners WHERE name = :name;

-- name: remove_dead_owners
-- The lock of a live owner is not even tried.
DELETE FROM owners WHERE CASE
  WHEN beat < extract(epoch FROM clock_timestamp()) - :silent THEN pg_try_advisory_xact_lock_shared(lock)
  ELSE false END;

-- name: add_secret
INSERT INTO secrets (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: secret
SELECT value FROM secrets WHERE name = :name;

-- ── blobs ────────────────────────────────────────────────────────────────────────────────────────

-- name: put_blob
-- Altered bytes are restored from this copy.
INSERT INTO blobs (key, put, data) VALUES (:key, :now, :data)
ON CONFLICT (key) DO UPDATE SET put = excluded.put, data = excluded.data;

-- name: blob
SELECT data FROM blobs WHERE key = :key;

-- name: part_of_blob
-- Reads only the requested part: the column is not compressed.
SELECT substring(data FROM :start::integer FOR :count::integer) AS data FROM blobs WHERE key = :key;

-- name: blob_size
SELECT octet_length(data) AS size FROM blobs WHERE key = :key;

-- name: delete_blob
DELETE FROM blobs WHERE key = :key AND put <= :before
  AND NOT EXISTS (SELECT 1 FROM blob_references r WHERE r.blob = :key)
  AND NOT EXISTS (SELECT 1 FROM files f WHERE f.blob = :key);

-- name: blob_is_there
SELECT 1 FROM blobs WHERE key = :key;

-- name: blobs_since
SELECT key FROM blobs WHERE put >= :since;

-- name: first_use
SELECT extract(epoch FROM applied)::double precision AS at FROM schema_version ORDER BY version LIMIT 1;

-- name: hold_account
-- Another process that adds files of this account waits until the transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended(:account, 0));

-- name: shared_among
SELECT DISTINCT c.id FROM conversations c JOIN members s ON s.conversation = coalesce(c.root, c.id)
WHERE c.deleted = 0 AND c.id IN (SELECT json_array_elements_text(:ids::text::json));

-- name: presence
-- Users who were present since then, and possibly still are.
SELECT p.conversation, p."user", p.typing FROM presence p JOIN conversations c ON c.id = p.conversation
WHERE p.seen > :since AND c.deleted = 0 AND p.conversation IN (SELECT json_array_elements_text(:ids::text::json))
  AND (coalesce(c."user", 'local') = p."user" OR EXISTS (
    SELECT 1 FROM members s WHERE s.conversation = coalesce(c.root, c.id) AND s."user" = p."user"))
ORDER BY p.conversation, p."user";
