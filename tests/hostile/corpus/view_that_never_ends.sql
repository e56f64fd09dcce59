-- A recursive view in the place of a table hung score.
DROP TABLE outcome; CREATE VIEW outcome AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS task, 'resisted' AS outcome, '{}' AS record, '' AS fingerprint FROM n
