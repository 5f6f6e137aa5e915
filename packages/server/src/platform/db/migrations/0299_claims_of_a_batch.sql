-- The statement that records a batch inserts the claims of all its payments at once and sets purser.claims for its transaction. The trigger inserts the
-- claims of every other insert: by a process of an earlier version, by a restore, and by hand.
create or replace function claim_payment() returns trigger language plpgsql as $$
declare
  claim bytea;
  challenge bytea;
  identifier bytea;
begin
  if current_setting('purser.claims', true) = 'statement' then
    return new;
  end if;
  claim := sha256(convert_to(new.claim_key, 'UTF8'));
  challenge := sha256(convert_to(new.challenge_id, 'UTF8'));
  identifier := sha256(convert_to(
    new.organisation_id || '/' || new.environment || '/' || lower(coalesce(new.payer, '')) || '/' || new.payment_identifier, 'UTF8'));
  if claim is null and challenge is null and identifier is null then
    return new;
  end if;
  insert into payment_claims (payment_id, claim_hash, challenge_hash, identifier_hash)
  values (new.id, claim, challenge, identifier) on conflict do nothing;
  if found then
    return new;
  end if;
  -- A payment that is put back, such as by a restore of the data alone, has its claims already.
  if exists (select from payment_claims
    where (claim_hash = claim or challenge_hash = challenge or identifier_hash = identifier) and payment_id = new.id) then
    return new;
  end if;
  return null;
end $$;
