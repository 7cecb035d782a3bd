-- Whose list of conversations is not what it was, and which line of it: other processes show it, too. Only the
-- last thousand are kept; who has missed some reads the whole list again.
CREATE TABLE list_changes (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation  TEXT NOT NULL,
  owner         TEXT NOT NULL
);
CREATE TRIGGER list_changes_bounded AFTER INSERT ON list_changes BEGIN
  DELETE FROM list_changes WHERE seq <= NEW.seq - 1000;
END;
CREATE TRIGGER line_added AFTER INSERT ON conversations BEGIN
  INSERT INTO list_changes (conversation, owner) VALUES (NEW.id, coalesce(NEW.user, 'local'));
END;
CREATE TRIGGER line_changed AFTER UPDATE OF title, settings, pinned, archived, tags, deleted ON conversations
WHEN (OLD.title, OLD.settings, OLD.pinned, OLD.archived, OLD.tags, OLD.deleted)
  IS NOT (NEW.title, NEW.settings, NEW.pinned, NEW.archived, NEW.tags, NEW.deleted) BEGIN
  INSERT INTO list_changes (conversation, owner) VALUES (NEW.id, coalesce(NEW.user, 'local'));
END;
CREATE TRIGGER turn_listed AFTER INSERT ON turns BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, coalesce(user, 'local') FROM conversations WHERE id = NEW.conversation;
END;
CREATE TRIGGER turn_unlisted AFTER UPDATE OF live ON turns BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, coalesce(user, 'local') FROM conversations WHERE id = NEW.conversation;
END;
CREATE TRIGGER question_listed AFTER INSERT ON questions BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, coalesce(user, 'local') FROM conversations WHERE id = NEW.conversation;
END;
CREATE TRIGGER question_unlisted AFTER UPDATE OF open ON questions BEGIN
  INSERT INTO list_changes (conversation, owner)
  SELECT id, coalesce(user, 'local') FROM conversations WHERE id = NEW.conversation;
END;
