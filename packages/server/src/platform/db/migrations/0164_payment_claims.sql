-- What may be used once for ever stands beside the payments, which are partitioned by month and may be archived: the claim and the challenge of a
-- payment over all organisations, and its identifier in one environment of one. SHA-256 of each, because a claim has up to 200 characters.
create table payment_claims (
  payment_id text not null,
  claim_hash bytea,
  challenge_hash bytea,
  identifier_hash bytea
);
create unique index payment_claims_by_claim on payment_claims (claim_hash) where claim_hash is not null;
create unique index payment_claims_by_challenge on payment_claims (challenge_hash) where challenge_hash is not null;
create unique index payment_claims_by_identifier on payment_claims (identifier_hash) where identifier_hash is not null;

create function claim_hash(name text) returns bytea language sql stable strict parallel safe as $$
  select sha256(convert_to(name, 'UTF8')) $$;
create function identifier_hash(organisation_id text, environment text, payment_identifier text) returns bytea language sql stable strict parallel safe as $$
  select sha256(convert_to(organisation_id || '/' || environment || '/' || payment_identifier, 'UTF8')) $$;

-- A payment is not inserted if anything that it uses is taken, whoever inserts it: also a process of the version before, and two at once.
create function claim_payment() returns trigger language plpgsql as $$
declare
  claim constant bytea := sha256(convert_to(new.claim_key, 'UTF8'));
  challenge constant bytea := sha256(convert_to(new.challenge_id, 'UTF8'));
  identifier constant bytea := sha256(convert_to(new.organisation_id || '/' || new.environment || '/' || new.payment_identifier, 'UTF8'));
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
create trigger claim_payment before insert on payments for each row execute function claim_payment();
