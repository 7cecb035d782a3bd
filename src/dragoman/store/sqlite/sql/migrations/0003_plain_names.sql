-- One word for one thing: what reaches a turn from outside is a signal, and a tool's definition has a fingerprint.
ALTER TABLE letters RENAME TO signals;
DROP INDEX letters_of_turn;
CREATE INDEX signals_of_turn ON signals (turn, seq);
ALTER TABLE pins RENAME COLUMN seal TO fingerprint;
