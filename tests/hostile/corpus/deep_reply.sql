-- A reply nested 200,000 levels deep was a RecursionError.
UPDATE reply SET body = '{"x":' || replace(printf('%.200000c', '['), '/', '') || '}'
