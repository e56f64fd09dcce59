-- A stopping rule with batches of 0 was a ZeroDivisionError.
UPDATE manifest SET body = json_set(body, '$.stopping_rule', json('{"half_width":0.1,"batch":0,"least":1}'))
