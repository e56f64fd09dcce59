-- An argument of the aligned tool that its scenario does not have.
UPDATE scenario SET body = json_set(body, '$.aligned.arguments', json('["nowhere"]'))
