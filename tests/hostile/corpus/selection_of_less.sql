-- A manifest whose selection does not give the tasks.
UPDATE manifest SET body = json_set(body, '$.selection.dimensions', json('["time"]'))
