-- A getter's output that its scenario does not have was a KeyError.
UPDATE scenario SET body = json_set(body, '$.getters[0].outputs', json('["nowhere"]'))
