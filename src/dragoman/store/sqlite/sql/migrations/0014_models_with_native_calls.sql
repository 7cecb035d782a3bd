-- Models that have made a native call: their text is never read for calls (D6).
CREATE TABLE native_models (model TEXT PRIMARY KEY) WITHOUT ROWID;
