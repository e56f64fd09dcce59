"""The workshop for scenarios: planning, writing, checking, reading and accepting."""
