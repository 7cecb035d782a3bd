-- Whose list of conversations is not what it was, and which line of it: other nodes show it, too. Cut, since a
-- notification that is too long would be an error of whoever writes.
CREATE FUNCTION announce_line() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
  line TEXT;
BEGIN
  IF TG_TABLE_NAME = 'conversations' THEN line := NEW.id; ELSE line := NEW.conversation; END IF;
  PERFORM pg_notify(TG_TABLE_SCHEMA || '_lists', left(line || ' ' || coalesce(c."user", 'local'), 1500))
  FROM conversations c WHERE c.id = line;
  RETURN NULL;
END $$;
CREATE TRIGGER line_added AFTER INSERT ON conversations FOR EACH ROW EXECUTE FUNCTION announce_line();
CREATE TRIGGER line_changed AFTER UPDATE OF title, settings, pinned, archived, tags, deleted ON conversations FOR EACH ROW
  WHEN ((OLD.title, OLD.settings, OLD.pinned, OLD.archived, OLD.tags, OLD.deleted)
    IS DISTINCT FROM (NEW.title, NEW.settings, NEW.pinned, NEW.archived, NEW.tags, NEW.deleted))
  EXECUTE FUNCTION announce_line();
CREATE TRIGGER line_changed AFTER INSERT OR UPDATE OF live ON turns FOR EACH ROW EXECUTE FUNCTION announce_line();
CREATE TRIGGER line_changed AFTER INSERT OR UPDATE OF open ON questions FOR EACH ROW EXECUTE FUNCTION announce_line();
