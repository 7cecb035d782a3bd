-- What one workspace looked like at the last look, and what was done to it. One file a workspace.
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);

-- The bytes of files and the targets of links, by their SHA-256. `packed`: compressed with zlib. Or a part of
-- a pack: where it begins there, and how long it is.
CREATE TABLE objects (
  hash TEXT PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL,
  pack INTEGER, start INTEGER, length INTEGER
);
CREATE INDEX objects_by_pack ON objects (pack) WHERE pack IS NOT NULL;

-- Many objects, compressed together with LZMA: versions of a file are nearly the same bytes. No number is given
-- twice: who has read a pack knows what is in it.
CREATE TABLE packs (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL);

-- The folder at the last look. A file whose status is still this one need not be read again.
CREATE TABLE files (
  path TEXT PRIMARY KEY,
  kind TEXT NOT NULL, mode INTEGER NOT NULL, object TEXT NOT NULL, size INTEGER NOT NULL,
  changed INTEGER NOT NULL, bytes INTEGER NOT NULL, inode INTEGER NOT NULL
) WITHOUT ROWID;

-- What looks found changed, in order: the history of the folder since the oldest record that is open.
CREATE TABLE deltas (position INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, before TEXT, after TEXT);

-- Who did something to the folder. `state`: open while calls run, done afterwards.
CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  state TEXT NOT NULL, kind TEXT NOT NULL,
  conversation TEXT NOT NULL, turn TEXT NOT NULL, step INTEGER NOT NULL, calls TEXT NOT NULL,
  reverts TEXT NOT NULL, notes TEXT NOT NULL,
  leaf_before TEXT, leaf_after TEXT, leaf_moved INTEGER NOT NULL DEFAULT 1,
  start INTEGER NOT NULL DEFAULT 0,  -- the position in deltas when it began
  wide INTEGER,                      -- the position from which everything is looked at; before, only `paths`
  paths TEXT NOT NULL DEFAULT '[]',
  created REAL NOT NULL
);
CREATE INDEX records_by_conversation ON records (conversation, id);
CREATE INDEX records_by_turn ON records (turn, id);

CREATE TABLE changes (
  record INTEGER NOT NULL REFERENCES records (id) ON DELETE CASCADE,
  path TEXT NOT NULL, before TEXT, after TEXT,
  PRIMARY KEY (record, path)
) WITHOUT ROWID;
CREATE INDEX changes_by_path ON changes (path, record);

-- A revert that has begun. Whoever finds a row here without its program finishes it.
CREATE TABLE journal (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
