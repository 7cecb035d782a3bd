-- Maintenance: deleting a conversation in small steps, blobs that nothing mentions, the log.

-- name: mark_deleted
-- From now on, the conversation is invisible.
UPDATE conversations SET deleted = 1 WHERE id = :id AND deleted = 0;

-- name: delete_live_turns
-- Including their facts, approval requests, signals and events: this fences off the process that runs one.
DELETE FROM turns WHERE conversation = :id AND live = 1;

-- name: delete_queue
DELETE FROM queue WHERE conversation = :id;

-- name: delete_grants
DELETE FROM grants WHERE conversation = :id;

-- name: delete_questions
DELETE FROM questions WHERE conversation = :id AND open = 1;

-- name: deleted_conversations
-- Conversations whose removal is unfinished, innermost first.
SELECT id FROM conversations WHERE deleted = 1 ORDER BY parent IS NULL, created DESC;

-- name: delete_some_turns
DELETE FROM turns WHERE id IN (SELECT id FROM turns WHERE conversation = :id LIMIT :limit);

-- name: take_off_some_messages
-- Detach the children of the messages that are deleted next: in a damaged file, also messages of other conversations.
UPDATE messages SET parent = NULL
WHERE parent IN (SELECT id FROM messages WHERE conversation = :id ORDER BY seq DESC LIMIT :limit)
  AND seq NOT IN (SELECT seq FROM messages WHERE conversation = :id ORDER BY seq DESC LIMIT :limit);

-- name: delete_turns_at_some_messages
-- The same for turns.
DELETE FROM turns
WHERE message IN (SELECT id FROM messages WHERE conversation = :id ORDER BY seq DESC LIMIT :limit);

-- name: delete_some_messages
-- Newest first, so that no message is deleted before its children.
DELETE FROM messages WHERE seq IN (
  SELECT seq FROM messages WHERE conversation = :id ORDER BY seq DESC LIMIT :limit);

-- name: untouched_conversations
-- Conversations that users began and that have not changed since, oldest first, after a given one.
SELECT id, title, leaf, "user", settings, usage, created, updated, parent, call, revision, pinned, archived, tags
FROM conversations
WHERE deleted = 0 AND pinned = 0 AND parent IS NULL AND updated < :before
  AND (:id IS NULL OR (updated >= :updated AND (updated > :updated OR id > :id)))
ORDER BY updated, id LIMIT :limit;

-- name: is_at_work
-- Whether a turn of it runs, waits for a user, or is about to begin.
SELECT 1 FROM turns WHERE conversation = :id AND live = 1
UNION ALL SELECT 1 FROM queue WHERE conversation = :id
UNION ALL SELECT 1 FROM questions WHERE conversation = :id AND open = 1 LIMIT 1;

-- name: give_up_blobs
-- Blobs that only conversations in deletion mention.
INSERT INTO unwanted_blobs
SELECT r.blob FROM blob_references r WHERE r.conversation = :id AND NOT EXISTS (
  SELECT 1 FROM blob_references other JOIN conversations c ON c.id = other.conversation
  WHERE other.blob = r.blob AND c.deleted = 0)
ON CONFLICT DO NOTHING RETURNING blob;

-- name: remove_conversation
DELETE FROM conversations WHERE id = :id AND deleted = 1;

-- name: add_blob_reference
INSERT INTO blob_references (blob, noun, owner, conversation)
VALUES (:blob, :noun, :owner, :conversation) ON CONFLICT DO NOTHING;

-- name: add_upload
INSERT INTO uploads (blob, "user", created) VALUES (:blob, :user, :created)
ON CONFLICT (blob, "user") DO UPDATE SET created = excluded.created;

-- name: old_uploads
SELECT blob FROM uploads WHERE created < :before LIMIT 1;

-- name: old_send_keys
SELECT name FROM send_keys WHERE created < :before LIMIT 1;

-- name: forget_send_keys
DELETE FROM send_keys WHERE created < :before;

-- name: expired_grants
SELECT id FROM grants WHERE expires < :now LIMIT 1;

-- name: forget_expired_grants
DELETE FROM grants WHERE expires < :now;

-- name: forget_uploads
DELETE FROM uploads WHERE created < :before;

-- name: add_file
-- Adds nothing if the user's files would exceed the limit.
INSERT INTO files (id, "user", blob, name, media_type, size, purpose, created, expires)
SELECT :id, :user, :blob, :name, :media_type, CAST(:size AS BIGINT), :purpose, :created, :expires
WHERE (SELECT coalesce(sum(size), 0) FROM files WHERE "user" = :user) + CAST(:size AS BIGINT) <= CAST(:limit AS BIGINT);

-- name: file
SELECT id, blob, name, media_type, size, purpose, created, expires FROM files
WHERE id = :id AND "user" = :user AND (expires IS NULL OR expires > :now);

-- name: files
SELECT id, blob, name, media_type, size, purpose, created, expires FROM files
WHERE "user" = :user AND (expires IS NULL OR expires > :now) ORDER BY created, id;

-- name: give_up_file
-- Its bytes are removed if nothing else mentions them.
INSERT INTO unwanted_blobs SELECT blob FROM files WHERE id = :id AND "user" = :user ON CONFLICT DO NOTHING;

-- name: remove_file
DELETE FROM files WHERE id = :id AND "user" = :user;

-- name: expired_files
SELECT id FROM files WHERE expires <= :now LIMIT 1;

-- name: give_up_expired_files
INSERT INTO unwanted_blobs SELECT DISTINCT blob FROM files WHERE expires <= :now ON CONFLICT DO NOTHING;

-- name: remove_expired_files
DELETE FROM files WHERE expires <= :now;

-- name: mentions
-- Where a user's conversations mention a blob, and whether the user uploaded it.
SELECT 'upload' AS noun, '' AS owner FROM uploads WHERE blob = :blob AND "user" = :user
UNION ALL
SELECT 'upload', '' FROM files WHERE blob = :blob AND "user" = :user
UNION ALL
SELECT r.noun, r.owner FROM blob_references r JOIN conversations c ON c.id = r.conversation
WHERE r.blob = :blob AND c.deleted = 0 AND (coalesce(c."user", 'local') = :user OR EXISTS (
  SELECT 1 FROM members s WHERE s.conversation = coalesce(c.root, c.id) AND s."user" = :user));

-- name: unwanted_blobs
SELECT blob FROM unwanted_blobs;

-- name: add_provider_file
INSERT INTO provider_files (account, id, blob, expires, created)
VALUES (:account, :id, :blob, :expires, :created) ON CONFLICT DO NOTHING;

-- name: provider_file
-- If several copies were uploaded at the same time, all processes use the one that was added first.
SELECT account, id, blob, expires, created FROM provider_files
WHERE blob = :blob AND account = :account AND (expires IS NULL OR expires > :now)
ORDER BY created, id LIMIT 1;

-- name: forget_provider_file
DELETE FROM provider_files WHERE account = :account AND id = :id;

-- name: unwanted_provider_files
-- Files that only deleted conversations mentioned, oldest first.
SELECT account, id, blob, expires FROM provider_files f
WHERE (expires IS NULL OR expires > :now) AND NOT EXISTS (
  SELECT 1 FROM blob_references r JOIN conversations c ON c.id = r.conversation
  WHERE r.blob = f.blob AND c.deleted = 0)
ORDER BY created, id LIMIT 100;

-- name: lost_provider_files
-- Expired files, and files that no process can delete because the key has changed.
SELECT blob FROM provider_files WHERE expires < :now OR (created < :before AND NOT EXISTS (
  SELECT 1 FROM blob_references r WHERE r.blob = provider_files.blob)) LIMIT 1;

-- name: drop_provider_files
DELETE FROM provider_files WHERE expires < :now OR (created < :before AND NOT EXISTS (
  SELECT 1 FROM blob_references r WHERE r.blob = provider_files.blob));
