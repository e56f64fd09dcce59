-- Model options nested 900 levels deep.
UPDATE manifest SET body = replace(body, '"options":{', '"options":{"extra_body":{"a":' || printf('%.900c', '[') || printf('%.900c', ']') || '},') WHERE body LIKE '%"options":{%'
