-- What users think of answers: a good or a bad one, and why.
CREATE TABLE ratings (
  turn    TEXT NOT NULL REFERENCES turns ON DELETE CASCADE,
  "user"  TEXT NOT NULL,
  value   TEXT NOT NULL,
  note    TEXT NOT NULL,
  at      DOUBLE PRECISION NOT NULL,
  PRIMARY KEY (turn, "user")
);
