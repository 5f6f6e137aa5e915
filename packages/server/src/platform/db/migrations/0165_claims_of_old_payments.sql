-- The claims of the payments from before the trigger of 0164. No sale waits for it: it reads a snapshot, and locks no payment.
insert into payment_claims (payment_id, claim_hash, challenge_hash, identifier_hash)
select id, claim_hash(claim_key), claim_hash(challenge_id), identifier_hash(organisation_id, environment, payment_identifier) from payments
where claim_key is not null or challenge_id is not null or payment_identifier is not null
on conflict do nothing;
-- A partition must have no constraint of which it is not known that old rows meet it.
alter table payments validate constraint payments_refunded_at_most;
