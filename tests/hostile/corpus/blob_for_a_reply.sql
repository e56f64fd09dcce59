-- A BLOB where a text is due.
UPDATE reply SET body = x'7b7d'
