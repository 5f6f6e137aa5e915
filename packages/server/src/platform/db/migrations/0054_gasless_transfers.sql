-- Gasless transfers are sent by the relayer, and give back the gas that they did not use.

alter table transfer_authorisations add column gas_reserved_nano_usd numeric(78, 0) not null default 0 check (gas_reserved_nano_usd >= 0);

-- Gasless transfers that are under way.
insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
  transaction_id, attempts, next_attempt_at, check_at, created_at)
select a.network, 'transfers.gasless', a.transfer_id, t.organisation_id, t.environment, lower(a.from_address), lower(a.asset),
  '0x' || encode(a.nonce, 'hex'),
  jsonb_build_object('kind', 'eip3009', 'token', a.asset, 'from', a.from_address, 'to', t.to_address, 'value', t.raw_amount::text, 'validAfter', '0',
    'validBefore', floor(extract(epoch from a.valid_before))::bigint::text, 'nonce', '0x' || encode(a.nonce, 'hex'), 'deployment', null,
    'signature', jsonb_build_object('kind', 'ecdsa', 'v', get_byte(a.signature, 64), 'r', '0x' || encode(substring(a.signature from 1 for 32), 'hex'),
      's', '0x' || encode(substring(a.signature from 33 for 32), 'hex'))),
  a.valid_before, a.attempt > 0,
  case when a.status = 'signed' or a.unresolved then 'waiting' else 'included' end,
  case when a.status = 'sent' and not a.unresolved then a.chain_transaction_id end,
  a.attempt,
  case when a.status = 'signed' then now() end,
  case when a.status = 'signed' then a.valid_before when a.unresolved then now() end,
  a.created_at
from transfer_authorisations a join transfers t on t.id = a.transfer_id
where a.status in ('signed', 'sent') and a.signature is not null;
insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
select distinct network, alone, organisation_id, purpose, signer, now() from relays where purpose = 'transfers.gasless' and state = 'waiting';
insert into relay_turns (network, alone, organisation_id, purpose, due_at)
select distinct network, alone, organisation_id, purpose, now() from relay_queues where purpose = 'transfers.gasless';
update chain_transactions set purpose = 'relays' where purpose = 'transfers.authorised' and status <> 'final';
update transfer_authorisations set status = 'signed' where status = 'sent';
update transfer_authorisations set attempt = 0 where status = 'planned';

-- What is signed and how far it is stands in its relay alone; attempts are those to sign.
alter table transfer_authorisations drop column signature, drop column chain_transaction_id, drop column unresolved, drop column look_at,
  drop constraint transfer_authorisations_status_check, add constraint transfer_authorisations_status_check check (status in ('planned', 'signed', 'ended'));
drop index transfer_authorisations_to_send;
create index transfer_authorisations_to_sign on transfer_authorisations (network, attempt, created_at) where status = 'planned';
