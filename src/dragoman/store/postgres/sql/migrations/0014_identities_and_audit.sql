-- Accounts at an OpenID Connect provider, and the user each one signs in as. `epoch` is part of what their sign-ins are
-- signed with: another one ends them all.
CREATE TABLE identities (
  issuer   TEXT NOT NULL,
  subject  TEXT NOT NULL,
  person   TEXT NOT NULL UNIQUE,
  epoch    TEXT NOT NULL,
  PRIMARY KEY (issuer, subject)
);

-- The teams of users who sign in at a provider, by the groups that it named last.
CREATE TABLE team_members (
  name    TEXT NOT NULL,
  person  TEXT NOT NULL,
  PRIMARY KEY (name, person)
);
CREATE INDEX team_members_by_person ON team_members (person);

-- Users who were removed. No other user gets their name, and with it what is theirs.
CREATE TABLE removed_people (name TEXT PRIMARY KEY);

-- Counts how often somebody lost a right: servers then look again at the streams that are open.
CREATE TABLE access (
  id        INTEGER PRIMARY KEY,
  revision  BIGINT NOT NULL
);

-- The audit log. Rows are only added, and deleted when they are older than the retention.
CREATE TABLE audit (
  seq      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at       DOUBLE PRECISION NOT NULL,
  person   TEXT NOT NULL,
  address  TEXT NOT NULL,
  action   TEXT NOT NULL,
  object   TEXT NOT NULL,
  details  TEXT NOT NULL
);
CREATE INDEX audit_by_time ON audit (at);
