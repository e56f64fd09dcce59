-- A selection without a naming.
UPDATE manifest SET body = json_set(body, '$.selection.namings', json('[]'), '$.stopping_rule', json('{"half_width":0.1}'))
