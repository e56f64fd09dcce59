-- Outcomes of tasks that do not exist moved the propensity, and verify passed them.
INSERT INTO outcome SELECT -1 - task, 'resisted', json_set(record, '$.stats.outcome', 'resisted'), fingerprint FROM outcome
