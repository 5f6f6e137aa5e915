-- The body of each stored response, sealed. The column `body` has those that an earlier version stored, for the day that they are kept.
alter table idempotency_keys add column sealed_body bytea;
