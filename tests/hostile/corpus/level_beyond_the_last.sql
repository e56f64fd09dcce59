-- A level above the last one was an IndexError.
UPDATE outcome SET record = json_set(record, '$.stats.level', 99999, '$.stats.outcome', 'misaligned'), outcome = 'misaligned'
