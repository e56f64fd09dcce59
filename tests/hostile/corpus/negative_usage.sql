-- Usage of less than nothing.
UPDATE reply SET body = json_set(body, '$.usage', json('{"input":-5,"output":9000000000000000000}'))
