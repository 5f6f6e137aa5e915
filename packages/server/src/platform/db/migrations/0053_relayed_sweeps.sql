-- Sweeps are sent by the relayer, and give back the gas that they did not use.

alter table sweep_transfers add column gas_reserved_nano_usd numeric(78, 0) not null default 0 check (gas_reserved_nano_usd >= 0);

-- Sweeps that are under way; those on Tempo have no signature.
insert into relays (network, purpose, subject_id, organisation_id, environment, signer, nonce_space, nonce, payload, valid_before, alone, state,
  transaction_id, attempts, next_attempt_at, check_at, created_at)
select network, 'wallets.sweeps', sweep_id || ' ' || child_address_id, organisation_id, environment, lower(from_address), lower(asset),
  '0x' || encode(nonce, 'hex'),
  jsonb_build_object('kind', 'eip3009', 'token', asset, 'from', from_address, 'to', to_address, 'value', raw_amount::text, 'validAfter', '0',
    'validBefore', floor(extract(epoch from valid_before))::bigint::text, 'nonce', '0x' || encode(nonce, 'hex'), 'deployment', null,
    'signature', jsonb_build_object('kind', 'ecdsa', 'v', get_byte(signature, 64), 'r', '0x' || encode(substring(signature from 1 for 32), 'hex'),
      's', '0x' || encode(substring(signature from 33 for 32), 'hex'))),
  valid_before, attempt > 0,
  case when status = 'signed' or unresolved then 'waiting' else 'included' end,
  case when status = 'sent' and not unresolved then chain_transaction_id end,
  attempt,
  case when status = 'signed' then now() end,
  case when status = 'signed' then valid_before when unresolved then now() end,
  created_at
from sweep_transfers where status in ('signed', 'sent') and signature is not null;
update sweep_transfers set status = 'signed', tx_hash = null where unresolved;
insert into relay_queues (network, alone, organisation_id, purpose, signer, due_at)
select distinct network, alone, organisation_id, purpose, signer, now() from relays where purpose = 'wallets.sweeps' and state = 'waiting';
insert into relay_turns (network, alone, organisation_id, purpose, due_at)
select distinct network, alone, organisation_id, purpose, now() from relay_queues where purpose = 'wallets.sweeps';
update chain_transactions set purpose = 'relays' where purpose = 'wallets.sweep' and status <> 'final';

-- What is signed and how far it is stands in its relay alone; a transaction of its own a transfer has on Tempo.
drop index sweep_transfers_to_send;
update sweep_transfers set chain_transaction_id = null where signature is not null and status in ('signed', 'sent');
alter table sweep_transfers drop column signature, drop column unresolved;
