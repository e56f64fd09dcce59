-- NULL where a text is due was a traceback.
UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', ''); PRAGMA writable_schema = RESET; UPDATE pressure SET body = NULL
