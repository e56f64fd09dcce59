-- A trigger deleted outcomes while a run was resumed.
CREATE TRIGGER later AFTER INSERT ON reply BEGIN DELETE FROM outcome; END
