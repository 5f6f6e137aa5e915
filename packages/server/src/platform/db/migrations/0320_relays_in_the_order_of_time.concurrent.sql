-- Indexes in the order of time have a condition that look-ups by keys do not have, so that no plan finds a signer's few relays, or one queue, among all that wait.
-- While the tables look empty, which they are nearly always, PostgreSQL takes both indexes for equally fast.
create index concurrently if not exists relays_in_order on relays (network, alone, next_attempt_at) where state = 'waiting' and next_attempt_at > '-infinity';
drop index concurrently if exists relays_waiting;
create index concurrently if not exists relay_queues_in_order on relay_queues (network, alone, organisation_id, purpose, due_at, signer) where due_at > '-infinity';
drop index concurrently if exists relay_queues_due;
