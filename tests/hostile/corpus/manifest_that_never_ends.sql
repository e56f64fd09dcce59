-- The manifest as a view that never gives a row.
DROP TABLE manifest; CREATE VIEW manifest AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS body FROM n WHERE i < 0
