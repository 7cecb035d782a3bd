-- How a person keeps order: in reach, out of the way, and under words of their own.
ALTER TABLE conversations ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
