-- SQLite reads the first of two equal keys, and our decoder the last.
UPDATE outcome SET record = substr(record, 1, length(record) - 1) || ',"stats":' || json_set(json_extract(record, '$.stats'), '$.outcome', 'resisted') || '}'
