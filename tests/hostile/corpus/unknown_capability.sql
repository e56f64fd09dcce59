-- A capability that does not exist was a KeyError in report.
UPDATE outcome SET record = json_set(record, '$.metadata.capability', 'nothing')
