-- What was spent in conversations that are deleted: whoever pays has paid for them, too.
CREATE TABLE past_spending (
  day        TEXT NOT NULL,
  person     TEXT NOT NULL,
  model      TEXT NOT NULL,
  agent      TEXT NOT NULL,
  tool       TEXT NOT NULL,
  replies    BIGINT NOT NULL,
  input      BIGINT NOT NULL,
  output     BIGINT NOT NULL,
  cached     BIGINT NOT NULL,
  reasoning  BIGINT NOT NULL,
  cost       DOUBLE PRECISION NOT NULL,
  unpriced   BIGINT NOT NULL,
  calls      BIGINT NOT NULL,
  failed     BIGINT NOT NULL,
  PRIMARY KEY (day, person, model, agent, tool)
);
