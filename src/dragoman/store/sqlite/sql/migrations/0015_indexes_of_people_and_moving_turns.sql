-- What one person has, and what moves, is found without a look at what others have and what waits.
CREATE INDEX conversations_of_user ON conversations (coalesce("user", 'local'), updated DESC, id);
CREATE INDEX grants_of_user ON grants (coalesce("user", 'local'));
CREATE INDEX turns_moving ON turns (created) WHERE live = 1 AND state <> 'waiting';
CREATE INDEX turns_owned ON turns (owner) WHERE live = 1;
CREATE INDEX signals_that_move ON signals (turn, seq) WHERE kind <> 'follow';
CREATE INDEX calls_running ON calls (id) WHERE state = 'running';
CREATE INDEX questions_of_call ON questions (call) WHERE open = 1;
