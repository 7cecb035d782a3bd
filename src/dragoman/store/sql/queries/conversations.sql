-- Conversations: add, list, change. None of these finds a conversation that is being deleted.

-- name: add_conversation
INSERT INTO conversations (id, title, leaf, "user", settings, usage, created, updated, parent, call, pinned, archived, tags, root)
VALUES (:id, :title, :leaf, :user, :settings, :usage, :created, :updated, :parent, :call, :pinned, :archived, :tags,
  (SELECT coalesce(root, id) FROM conversations WHERE id = :parent));

-- name: conversation
SELECT id, title, leaf, "user", settings, usage, created, updated, parent, call, revision, pinned, archived, tags
FROM conversations
WHERE id = :id AND deleted = 0;

-- name: owner_of
SELECT coalesce("user", 'local') AS owner FROM conversations WHERE id = :id AND deleted = 0;

-- name: root_of
-- The user's conversation that a sub-conversation belongs to. Both have the same owner and members.
SELECT r.id, r."user" FROM conversations c JOIN conversations r ON r.id = coalesce(c.root, c.id)
WHERE c.id = :id AND c.deleted = 0 AND r.deleted = 0;

-- name: conversations
-- One page of the list, most recently used first. `updated` and `id` are from the last row of the previous page. A
-- tag is in JSON and must follow the start of the list or a separator, so it cannot match the end of another tag. A
-- conversation without a user belongs to the user `local` on this machine.
SELECT id, title, leaf, "user", settings, usage, created, updated, parent, call, revision, pinned, archived, tags
FROM conversations
WHERE deleted = 0 AND (:user IS NULL OR coalesce("user", 'local') = :user)
  AND (:pinned IS NULL OR pinned = :pinned) AND (:archived IS NULL OR archived = :archived)
  AND (:tag IS NULL OR replace(replace(tags, '[' || :tag, ''), ', ' || :tag, '') <> tags)
  AND (:id IS NULL OR (updated <= :updated AND (updated < :updated OR id > :id)))
ORDER BY updated DESC, id LIMIT :limit;

-- name: shared_conversations
-- The same for conversations that are shared with a user.
SELECT c.id, c.title, c.leaf, c."user", c.settings, c.usage, c.created, c.updated, c.parent, c.call, c.revision, c.pinned,
  c.archived, c.tags
FROM members s CROSS JOIN conversations c
WHERE s."user" = :user AND coalesce(c.root, c.id) = s.conversation || '' AND c.deleted = 0
  AND (:pinned IS NULL OR c.pinned = :pinned) AND (:archived IS NULL OR c.archived = :archived)
  AND (:tag IS NULL OR replace(replace(c.tags, '[' || :tag, ''), ', ' || :tag, '') <> c.tags)
  AND (:id IS NULL OR (c.updated <= :updated AND (c.updated < :updated OR c.id > :id)))
ORDER BY c.updated DESC, c.id LIMIT :limit;

-- name: shared_tags
SELECT DISTINCT c.tags FROM members s CROSS JOIN conversations c
WHERE s."user" = :user AND coalesce(c.root, c.id) = s.conversation || '' AND c.deleted = 0 AND c.tags <> '[]';

-- name: tags
SELECT DISTINCT tags FROM conversations
WHERE deleted = 0 AND tags <> '[]' AND (:user IS NULL OR coalesce("user", 'local') = :user);

-- name: set_labels
UPDATE conversations SET pinned = coalesce(:pinned, pinned), archived = coalesce(:archived, archived), tags = coalesce(:tags, tags)
WHERE id = :id AND deleted = 0;

-- name: take_out_of_archive
UPDATE conversations SET archived = 0 WHERE id = :id AND archived = 1;

-- name: set_title
UPDATE conversations SET title = :title WHERE id = :id AND deleted = 0;

-- name: replace_title
-- Only if the value is unchanged: the user can have set another one.
UPDATE conversations SET title = :title WHERE id = :id AND deleted = 0 AND coalesce(title, '') = coalesce(:before, '');

-- name: set_settings
UPDATE conversations SET settings = :settings WHERE id = :id;

-- name: set_leaf
UPDATE conversations SET leaf = :leaf, updated = CASE WHEN updated < :at THEN :at ELSE updated END
WHERE id = :id AND CAST(coalesce(leaf, '') AS TEXT) = coalesce(:from, CAST(leaf AS TEXT), '');

-- name: grow_conversation
-- The revision shows a client that its copy of the tree is outdated. The leaf moves only if the user still views the
-- branch that grew. It is cast because a damaged file can contain it as bytes.
UPDATE conversations SET
    revision = revision + 1,
    updated = CASE WHEN updated < :at THEN :at ELSE updated END,
    leaf = CASE WHEN :to IS NOT NULL AND CAST(coalesce(leaf, '') AS TEXT) = coalesce(:from, '') THEN :to ELSE leaf END
WHERE id = :id;

-- name: usage_of
SELECT usage FROM conversations WHERE id = :id;

-- name: set_usage
UPDATE conversations SET usage = :usage WHERE id = :id;

-- name: opened_in
-- The conversations that calls of a conversation opened, and those that their calls opened, outermost first.
WITH RECURSIVE nested (id, depth) AS (
  SELECT c.id, 1 FROM conversations c WHERE c.parent = :id AND c.deleted = 0
  UNION ALL
  SELECT c.id, nested.depth + 1 FROM nested JOIN conversations c ON c.parent = nested.id WHERE c.deleted = 0)
SELECT c.id, c.title, c.leaf, c."user", c.settings, c.usage, c.created, c.updated, c.parent, c.call, c.revision,
  c.pinned, c.archived, c.tags
FROM nested JOIN conversations c ON c.id = nested.id ORDER BY nested.depth, c.created, c.id;

-- name: within
-- A conversation and those that its calls opened, innermost first.
WITH RECURSIVE nested (id, depth) AS (
  SELECT :id, 0
  UNION ALL
  SELECT c.id, nested.depth + 1 FROM nested JOIN conversations c ON c.parent = nested.id WHERE c.deleted = 0)
SELECT id FROM nested ORDER BY depth DESC;
