-- What was spent in conversations that are deleted: whoever pays has paid for them, too.
CREATE TABLE past_spending (
  day        TEXT NOT NULL,
  person     TEXT NOT NULL,
  model      TEXT NOT NULL,
  agent      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  replies    INTEGER NOT NULL,
  input      INTEGER NOT NULL,
  output     INTEGER NOT NULL,
  cached     INTEGER NOT NULL,
  reasoning  INTEGER NOT NULL,
  cost       REAL NOT NULL,
  unpriced   INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  failed     INTEGER NOT NULL,
  PRIMARY KEY (day, person, model, agent, tool)
) WITHOUT ROWID;
