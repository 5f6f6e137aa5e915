-- A payment identifier is a name that its payer gives: another payer may use the same one. Identifiers of payments from before keep the name that they took.
create function payer_identifier_hash(organisation_id text, environment text, payer text, payment_identifier text) returns bytea language sql stable parallel safe as $$
  select sha256(convert_to(organisation_id || '/' || environment || '/' || lower(coalesce(payer, '')) || '/' || payment_identifier, 'UTF8')) $$;

create or replace function claim_payment() returns trigger language plpgsql as $$
declare
  claim constant bytea := sha256(convert_to(new.claim_key, 'UTF8'));
  challenge constant bytea := sha256(convert_to(new.challenge_id, 'UTF8'));
  identifier constant bytea := sha256(convert_to(
    new.organisation_id || '/' || new.environment || '/' || lower(coalesce(new.payer, '')) || '/' || new.payment_identifier, 'UTF8'));
begin
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
