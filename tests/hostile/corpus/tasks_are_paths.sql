-- Keys of tasks that are paths and markup.
UPDATE task SET key = '../../../pwned' || number; UPDATE outcome SET record = json_set(record, '$.metadata.task', '../../../pwned' || task, '$.metadata.scenario', '<script>')
