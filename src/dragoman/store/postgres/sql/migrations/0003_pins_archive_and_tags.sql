-- How a person keeps order: in reach, out of the way, and under words of their own.
ALTER TABLE conversations ADD COLUMN pinned BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN archived BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
