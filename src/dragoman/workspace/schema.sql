-- The state of one workspace at the last scan, and what was done to it. One file per workspace.
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);

-- The bytes of files and the targets of links, by their SHA-256. `packed`: compressed with zlib. An object can also
-- be a part of a pack: then its start there and its length are stored.
CREATE TABLE objects (
  hash TEXT PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL,
  pack INTEGER, start INTEGER, length INTEGER
);
CREATE INDEX objects_by_pack ON objects (pack) WHERE pack IS NOT NULL;

-- Many objects, compressed together with LZMA: versions of a file are nearly the same bytes. A number is never
-- reused, so a process that has read a pack can cache its content.
CREATE TABLE packs (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB NOT NULL);

-- The folder at the last scan. A file with an unchanged status need not be read again.
CREATE TABLE files (
  path TEXT PRIMARY KEY,
  kind TEXT NOT NULL, mode INTEGER NOT NULL, object TEXT NOT NULL, size INTEGER NOT NULL,
  changed INTEGER NOT NULL, bytes INTEGER NOT NULL, inode INTEGER NOT NULL
) WITHOUT ROWID;

-- What looks found changed, in order: the history of the folder since the oldest record that is open.
CREATE TABLE deltas (position INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, before TEXT, after TEXT);

-- Operations on the folder. `state`: open while calls run, done afterwards.
CREATE TABLE records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  state TEXT NOT NULL, kind TEXT NOT NULL,
  conversation TEXT NOT NULL, turn TEXT NOT NULL, step INTEGER NOT NULL, calls TEXT NOT NULL,
  reverts TEXT NOT NULL, notes TEXT NOT NULL,
  leaf_before TEXT, leaf_after TEXT, leaf_moved INTEGER NOT NULL DEFAULT 1,
  start INTEGER NOT NULL DEFAULT 0,  -- the position in deltas when it began
  wide INTEGER,                      -- the position from which everything is scanned; before it, only `paths`
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

-- A revert that has begun. A process that finds a row here whose process is gone finishes it.
CREATE TABLE journal (id INTEGER PRIMARY KEY, body TEXT NOT NULL);
