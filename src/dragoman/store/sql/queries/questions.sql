-- Approval requests, signals and grants.

-- name: add_question
INSERT INTO questions (id, conversation, turn, call, body) VALUES (:id, :conversation, :turn, :call, :body);

-- name: close_questions_of
UPDATE questions SET open = 0 WHERE turn = :turn AND open = 1;

-- name: question
SELECT id, body FROM questions WHERE id = :id;

-- name: conversation_of_question
SELECT conversation FROM questions WHERE id = :id;

-- name: settle_question
-- Only the first answer finds it open.
UPDATE questions SET open = 0, body = :body WHERE id = :id AND open = 1;

-- name: close_unreadable_question
-- An unreadable approval request keeps its body and is closed.
UPDATE questions SET open = 0 WHERE id = :id;

-- ── signals ──────────────────────────────────────────────────────────────────────────────────────

-- name: add_signal
INSERT INTO signals (turn, kind, body) VALUES (:turn, :kind, :body);

-- name: call_not_running
-- Whether the result of a call was accepted.
SELECT 1 FROM calls WHERE id = :id AND state <> 'running';

-- name: followed
SELECT 1 FROM signals WHERE turn = :turn AND kind = 'follow';

-- name: signals
SELECT seq, kind, body FROM signals WHERE turn = :turn ORDER BY seq;

-- name: drop_signal
DELETE FROM signals WHERE seq = :seq;

-- name: withdraw_steering
DELETE FROM signals WHERE turn = :turn AND seq = :seq AND kind = 'steer';

-- name: drop_signals
DELETE FROM signals WHERE turn = :turn;

-- name: turns_with_signals
SELECT turn, max(seq) AS newest, min(CASE WHEN kind = 'follow' THEN 1 ELSE 0 END) AS only_followed
FROM signals GROUP BY turn ORDER BY turn;

-- ── grants ───────────────────────────────────────────────────────────────────────────────────────

-- name: add_grant
INSERT INTO grants (id, conversation, permission, pattern, action, created, "user", workspace, expires)
VALUES (:id, :conversation, :permission, :pattern, :action, :created, :user, :workspace, :expires);

-- name: grants
-- The rules for what a user sends in a conversation, which are the sender's, and what its owner denies; or all rules
-- of a user, or all rules. A denial in a conversation also applies to those that its calls opened.
WITH RECURSIVE above (id, parent) AS (
  SELECT id, parent FROM conversations WHERE id = :conversation
  UNION ALL
  SELECT c.id, c.parent FROM above JOIN conversations c ON c.id = above.parent)
SELECT id, conversation, permission, pattern, action, created, "user", workspace, expires FROM grants
WHERE (:conversation IS NULL OR (
    (conversation IS NULL OR conversation = :conversation
      OR (action = 'deny' AND conversation IN (SELECT id FROM above)))
    AND (coalesce("user", 'local') = coalesce(:sender, (SELECT coalesce("user", 'local') FROM conversations WHERE id = :conversation))
      OR (action = 'deny' AND coalesce("user", 'local') = (SELECT coalesce("user", 'local') FROM conversations WHERE id = :conversation)))))
  AND (:user IS NULL OR coalesce("user", 'local') = :user)
ORDER BY conversation IS NOT NULL, created, id;

-- name: removed_sender
-- Whether the user whose rules apply, the sender or else the owner, was removed or no longer takes part here.
SELECT c.id, coalesce(:sender, c."user") AS "user" FROM conversations c
WHERE c.id = :conversation AND (coalesce(:sender, c."user") IN (SELECT name FROM removed_people)
  OR (:sender <> coalesce(c."user", 'local') AND NOT EXISTS (
    SELECT 1 FROM members s WHERE s.conversation = coalesce(c.root, c.id) AND s."user" = :sender AND s.role >= 3)));

-- name: revoke_grant
DELETE FROM grants WHERE id = :id;
