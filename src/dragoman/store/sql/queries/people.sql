-- People, their keys and prompts, what they spent, and the tools they pinned.

-- name: pin
SELECT fingerprint FROM pins WHERE "user" = :user AND tool = :tool;

-- name: set_pin
INSERT INTO pins ("user", tool, fingerprint) VALUES (:user, :tool, :fingerprint)
ON CONFLICT ("user", tool) DO UPDATE SET fingerprint = :fingerprint;

-- name: add_person
INSERT INTO people (name, key, created) VALUES (:id, :key, :created) ON CONFLICT DO NOTHING;

-- name: person_with_key
SELECT name FROM people WHERE key = :key;

-- name: key_of_person
SELECT key FROM people WHERE name = :id;

-- name: people
SELECT name, created FROM people ORDER BY name;

-- name: remove_person
DELETE FROM people WHERE name = :id;

-- name: prompts
SELECT name, text FROM prompts WHERE "user" = :user ORDER BY name;

-- name: set_prompt
INSERT INTO prompts ("user", name, text) VALUES (:user, :name, :text)
ON CONFLICT ("user", name) DO UPDATE SET text = :text;

-- name: remove_prompt
DELETE FROM prompts WHERE "user" = :user AND name = :id;
