-- Pressure messages fewer than levels.
UPDATE pressure SET body = '[]'
