-- Users, their keys and prompts, their spending, and the tools they pinned.

-- name: pin
SELECT fingerprint FROM pins WHERE "user" = :user AND tool = :tool;

-- name: set_pin
INSERT INTO pins ("user", tool, fingerprint) VALUES (:user, :tool, :fingerprint)
ON CONFLICT ("user", tool) DO UPDATE SET fingerprint = :fingerprint;

-- name: add_native_model
INSERT INTO native_models (model) VALUES (:model) ON CONFLICT DO NOTHING;

-- name: native_models
SELECT model FROM native_models;

-- name: add_person
INSERT INTO people (name, key, created) VALUES (:id, :key, :created) ON CONFLICT DO NOTHING;

-- name: person_with_key
SELECT name FROM people WHERE key = :key;

-- name: key_of_person
SELECT key FROM people WHERE name = :id;

-- name: is_name_free
-- A name that no user has or had. The data stored under a name belongs to its user.
SELECT 1 AS free WHERE NOT EXISTS (SELECT 1 FROM people WHERE name = :id)
  AND NOT EXISTS (SELECT 1 FROM removed_people WHERE name = :id)
  AND NOT EXISTS (SELECT 1 FROM conversations WHERE coalesce("user", 'local') = :id);

-- name: note_removed
INSERT INTO removed_people (name) VALUES (:id) ON CONFLICT DO NOTHING;

-- name: forget_removed
DELETE FROM removed_people WHERE name = :id;

-- name: is_removed
SELECT 1 AS removed FROM removed_people WHERE name = :id;

-- name: change_access
INSERT INTO access (id, revision) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET revision = access.revision + 1;

-- name: access_revision
SELECT revision FROM access;

-- name: identity
-- The account, and whether its user was removed.
SELECT i.person, i.epoch, p.name FROM identities i LEFT JOIN people p ON p.name = i.person
WHERE i.issuer = :issuer AND i.subject = :subject;

-- name: epoch_of_identity
SELECT epoch FROM identities WHERE person = :id;

-- name: add_identity
INSERT INTO identities (issuer, subject, person, epoch) VALUES (:issuer, :subject, :person, :epoch) ON CONFLICT DO NOTHING;

-- name: renew_identity
UPDATE identities SET epoch = :epoch WHERE issuer = :issuer AND subject = :subject;

-- name: leave_teams
DELETE FROM team_members WHERE person = :id;

-- name: join_team
INSERT INTO team_members (name, person) VALUES (:name, :id) ON CONFLICT DO NOTHING;

-- name: members_of_team
SELECT person FROM team_members WHERE name = :name;

-- name: end_session
INSERT INTO ended_sessions (id, expires) VALUES (:id, :expires) ON CONFLICT DO NOTHING;

-- name: forget_sessions
-- Sessions whose cookie has expired.
DELETE FROM ended_sessions WHERE expires < :now;

-- name: ended_session
SELECT id FROM ended_sessions WHERE id = :id OR id = :other;

-- name: people
SELECT p.name, p.created, i.issuer, i.subject FROM people p LEFT JOIN identities i ON i.person = p.name
ORDER BY p.name;

-- name: queued_turns_of_person
SELECT q.turn FROM queue q JOIN conversations c ON c.id = q.conversation
WHERE coalesce(q.sender, c."user", 'local') = :id ORDER BY q.seq DESC;

-- name: live_turns_of_person
SELECT t.id AS turn, t.created FROM conversations c JOIN turns t ON t.conversation = c.id
WHERE coalesce(c."user", 'local') = :id AND t.live = 1 AND t.sender IS NULL
UNION ALL
SELECT id, created FROM turns WHERE sender = :id AND live = 1 ORDER BY created;

-- name: remove_person
DELETE FROM people WHERE name = :id;

-- name: add_audit
INSERT INTO audit (at, person, address, action, object, details)
VALUES (:at, :person, :address, :action, :object, :details);

-- name: audit
SELECT seq, at, person, address, action, object, details FROM audit
WHERE at >= :since AND (:before IS NULL OR seq < :before) ORDER BY seq DESC LIMIT :limit;

-- name: forget_audit
DELETE FROM audit WHERE at < :before;

-- name: prompts
SELECT name, text FROM prompts WHERE "user" = :user ORDER BY name;

-- name: set_prompt
INSERT INTO prompts ("user", name, text) VALUES (:user, :name, :text)
ON CONFLICT ("user", name) DO UPDATE SET text = :text;

-- name: remove_prompt
DELETE FROM prompts WHERE "user" = :user AND name = :id;

-- name: past_spending
-- The spending in deleted conversations.
SELECT * FROM past_spending WHERE day >= :day AND (:user IS NULL OR person = :user)
ORDER BY day, person, model, agent, tool;

-- name: keep_spending
INSERT INTO past_spending (day, person, model, agent, tool, replies, input, output, cached, reasoning, cost, unpriced, calls, failed)
VALUES (:day, :person, :model, :agent, :tool, :replies, :input, :output, :cached, :reasoning, :cost, :unpriced, :calls, :failed)
ON CONFLICT (day, person, model, agent, tool) DO UPDATE SET
  replies = past_spending.replies + excluded.replies, input = past_spending.input + excluded.input,
  output = past_spending.output + excluded.output, cached = past_spending.cached + excluded.cached,
  reasoning = past_spending.reasoning + excluded.reasoning, cost = past_spending.cost + excluded.cost,
  unpriced = past_spending.unpriced + excluded.unpriced, calls = past_spending.calls + excluded.calls,
  failed = past_spending.failed + excluded.failed;
