-- Members of conversations, invitations and links.

-- name: right_of
-- The owner of a conversation, and the role in which it is shared with a user: NULL if it is not.
SELECT coalesce(c."user", 'local') AS owner,
  (SELECT s.role FROM members s WHERE s.conversation = coalesce(c.root, c.id) AND s."user" = :user) AS role
FROM conversations c WHERE c.id = :id AND c.deleted = 0;

-- name: members
SELECT s."user", s.role, s.added_by, s.added FROM conversations c JOIN members s ON s.conversation = coalesce(c.root, c.id)
WHERE c.id = :id AND c.deleted = 0 ORDER BY s.added, s."user";

-- name: set_member
INSERT INTO members (conversation, "user", role, added_by, added) VALUES (:conversation, :user, :role, :added_by, :added)
ON CONFLICT (conversation, "user") DO UPDATE SET role = excluded.role;

-- name: remove_member
DELETE FROM members WHERE conversation = :conversation AND "user" = :user;

-- name: remove_memberships
-- For a removed user: a later user with the same name is another user.
DELETE FROM members WHERE "user" = :id;

-- name: set_owner
UPDATE conversations SET "user" = :user WHERE coalesce(root, id) = :id;

-- name: name_sender_of_turns
-- Before the owner changes: the owner so far is the sender of existing turns without a name.
UPDATE turns SET sender = :sender
WHERE sender IS NULL AND conversation IN (SELECT id FROM conversations WHERE coalesce(root, id) = :id);

-- name: name_sender_of_queue
UPDATE queue SET sender = :sender
WHERE sender IS NULL AND conversation IN (SELECT id FROM conversations WHERE coalesce(root, id) = :id);

-- name: turns_sent_by
-- A user's turns that have not ended or not begun, in a conversation and those that its calls opened.
SELECT t.id FROM turns t JOIN conversations c ON c.id = t.conversation
WHERE coalesce(c.root, c.id) = :conversation AND t.live = 1 AND t.sender = :user
UNION ALL
SELECT q.turn FROM queue q JOIN conversations c ON c.id = q.conversation
WHERE coalesce(c.root, c.id) = :conversation AND q.sender = :user;

-- name: add_share
INSERT INTO shares (id, conversation, hash, kind, role, created_by, created, expires, upto, omits, frozen)
VALUES (:id, :conversation, :hash, :kind, :role, :created_by, :created, :expires, :upto, :omits, :frozen);

-- name: shares
SELECT s.* FROM conversations c JOIN shares s ON s.conversation = c.id
WHERE c.id = :id AND c.deleted = 0 AND (s.expires IS NULL OR s.expires > :now) ORDER BY s.created, s.id;

-- name: share
-- A valid share with the state of its conversation. Shares of a removed user are invalid.
SELECT s.*, c.revision, c.leaf, c.title FROM shares s JOIN conversations c ON c.id = s.conversation
WHERE s.hash = :hash AND c.deleted = 0 AND (s.expires IS NULL OR s.expires > :now)
  AND s.created_by NOT IN (SELECT name FROM removed_people);

-- name: use_invitation
-- If two users use it at the same moment, only one finds a row.
DELETE FROM shares WHERE id = :id AND kind = 'invitation';

-- name: remove_share
DELETE FROM shares WHERE id = :id AND conversation = :conversation;

-- name: remove_shares_of_conversation
-- When the owner changes, the shares of the old owner end.
DELETE FROM shares WHERE conversation = :id;

-- name: remove_shares
-- For a removed user: the shares that they created, and those of their conversations.
DELETE FROM shares WHERE created_by = :id OR conversation IN (
  SELECT id FROM conversations WHERE coalesce("user", 'local') = :id);

-- name: old_shares
SELECT id FROM shares WHERE expires < :now LIMIT 1;

-- name: forget_shares
DELETE FROM shares WHERE expires < :now;

-- name: note_presence
-- Only in shared conversations: in others, presence has no readers.
INSERT INTO presence (conversation, "user", seen, typing)
SELECT :conversation, :user, :seen, coalesce(CAST(:typing AS DOUBLE PRECISION), 0)
WHERE EXISTS (SELECT 1 FROM conversations c JOIN members s ON s.conversation = coalesce(c.root, c.id)
  WHERE c.id = :conversation AND c.deleted = 0)
ON CONFLICT (conversation, "user") DO UPDATE
SET seen = excluded.seen, typing = coalesce(CAST(:typing AS DOUBLE PRECISION), presence.typing);

-- name: old_presence
SELECT conversation FROM presence WHERE seen < :before LIMIT 1;

-- name: forget_presence
DELETE FROM presence WHERE seen < :before;
