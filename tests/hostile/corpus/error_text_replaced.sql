-- The stored error of a task that errored differed from its record, and verify passed it.
-- : half.run
UPDATE error SET body = 'something else'
