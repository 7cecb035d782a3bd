-- Conversations: added, listed, changed. One that is being deleted is there for none of these.

-- name: add_conversation
INSERT INTO conversations (id, title, leaf, user, settings, usage, created, updated, parent, call)
VALUES (:id, :title, :leaf, :user, :settings, :usage, :created, :updated, :parent, :call);

-- name: conversation
SELECT id, title, leaf, user, settings, usage, created, updated, parent, call, revision FROM conversations
WHERE id = :id AND deleted = 0;

-- name: owner_of
SELECT coalesce(user, 'local') AS owner FROM conversations WHERE id = :id AND deleted = 0;

-- name: conversations
-- One page of the list, the most recently used first; `updated` and `id` are the last line of the page before.
-- A conversation without a user belongs to the person at the machine, who is called local.
SELECT id, title, leaf, user, settings, usage, created, updated, parent, call, revision FROM conversations
WHERE deleted = 0 AND (:user IS NULL OR coalesce(user, 'local') = :user)
  AND (:id IS NULL OR updated < :updated OR (updated = :updated AND id > :id))
ORDER BY updated DESC, id LIMIT :limit;

-- name: revisions
SELECT id, revision FROM conversations WHERE id IN (SELECT value FROM json_each(:ids)) AND deleted = 0;

-- name: set_title
UPDATE conversations SET title = :title WHERE id = :id AND deleted = 0;

-- name: set_settings
UPDATE conversations SET settings = :settings WHERE id = :id;

-- name: set_leaf
UPDATE conversations SET leaf = :leaf, updated = max(updated, :at) WHERE id = :id;

-- name: grow_conversation
-- Whoever has a copy of the tree sees by the revision that it is old. The leaf moves only where the person
-- still looks at the branch that grew.
UPDATE conversations SET
    revision = revision + 1,
    updated = max(updated, :at),
    leaf = iif(:to IS NOT NULL AND leaf IS :from, :to, leaf)
WHERE id = :id;

-- name: usage_of
SELECT usage FROM conversations WHERE id = :id;

-- name: set_usage
UPDATE conversations SET usage = :usage WHERE id = :id;

-- name: within
-- A conversation and those that its calls opened, the innermost first.
WITH RECURSIVE inner (id, depth) AS (
  SELECT :id, 0
  UNION ALL
  SELECT c.id, inner.depth + 1 FROM inner JOIN conversations c ON c.parent = inner.id WHERE c.deleted = 0)
SELECT id FROM inner ORDER BY depth DESC;

-- name: busy_conversations
-- What the list shows beside a conversation: whether a turn is alive in it, and how much waits for a person.
SELECT c.value AS id,
  EXISTS (SELECT 1 FROM turns t WHERE t.conversation = c.value AND t.live = 1) AS live,
  (SELECT count(*) FROM questions q WHERE q.conversation = c.value AND q.open = 1) AS waiting
FROM json_each(:ids) c;
