-- A column whose value takes a gigabyte to compute.
DROP TABLE error; CREATE TABLE error (number INTEGER PRIMARY KEY, task, turn AS (length(randomblob(1000000000))), body)
