-- Which of two manifests is read depends on the query.
INSERT INTO manifest SELECT json_set(body, '$.model', 'another') FROM manifest
