-- What transactions and authorizations under way will take from managed wallets: the one list by which a wallet is found able to pay.

create table reservations (
  -- Drawn under the lock of the owner.
  seq bigint primary key generated always as identity,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  network text not null,
  owner text not null,
  -- Symbol of what leaves; on Tempo also of what the gas is paid in.
  asset text not null,
  reason text not null check (reason in ('transfer', 'gas', 'top-up', 'sweep', 'withdrawal')),
  subject_id text not null,
  part integer not null,
  raw_amount numeric(78, 0) not null check (raw_amount >= 0),
  gas_limit numeric(78, 0) not null default 0 check (gas_limit >= 0),
  data_bytes integer not null default 0,
  -- The transaction that takes it, and its nonce: a balance of a block whose count is above the nonce has it subtracted already.
  transaction_id text references chain_transactions (id),
  nonce bigint,
  -- Or the EIP-3009 authorization that takes it.
  authorization_nonce bytea check (octet_length(authorization_nonce) = 32),
  -- Its transaction or authorization has ended, in this block or an earlier one.
  ended_at timestamptz,
  ended_block bigint,
  unique (subject_id, part, owner, asset)
);
create index reservations_by_owner on reservations (network, owner, asset, coalesce(nonce, 9223372036854775807));
create index reservations_with_nonce on reservations (network, owner) where nonce is not null;
create index reservations_authorized on reservations (network, owner) where authorization_nonce is not null;
create index reservations_open on reservations (network) where ended_block is null;
create index reservations_ended on reservations (ended_at) where ended_block is not null;

-- What came in and is not final is not there to spend.
create index wallet_transactions_not_final on wallet_transactions (organisation_id, environment, wallet_id)
  where direction = 'in' and status = 'pending';

-- Transfers that are under way: their steps' coin and gas, and their tokens.
insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, gas_limit, data_bytes, transaction_id, nonce)
select t.organisation_id, t.environment, coalesce(c.network, t.from_network), s.sender,
  case when coalesce(c.network, t.from_network) like 'polygon%' then 'POL' else 'ETH' end,
  case when s.kind in ('top-up', 'refill') then 'top-up' else 'gas' end, t.id, s.position, s.value, s.gas_limit, octet_length(s.data), c.id, c.nonce
from transfers t join transfer_steps s on s.transfer_id = t.id left join chain_transactions c on c.id = s.transaction_id
where (t.ended_at is null or (s.kind = 'revoke' and t.revoke_at is not null)) and coalesce(c.network, t.from_network) not like 'tempo%';
insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, gas_limit, data_bytes, transaction_id,
  nonce, authorization_nonce)
select t.organisation_id, t.environment, t.from_network, t.from_address, t.from_token, 'transfer', t.id, coalesce(s.position, 0), t.raw_amount,
  case when t.from_network like 'tempo%' then coalesce(s.gas_limit, 0) else 0 end, coalesce(octet_length(s.data), 0), c.id, c.nonce, a.nonce
from transfers t left join transfer_steps s on s.transfer_id = t.id and s.kind in ('send', 'partner')
  left join chain_transactions c on c.id = s.transaction_id left join transfer_authorisations a on a.transfer_id = t.id
where t.ended_at is null and t.from_token not in ('ETH', 'POL');

-- Sweeps that are under way.
insert into reservations (organisation_id, environment, network, owner, asset, reason, subject_id, part, raw_amount, transaction_id, nonce, authorization_nonce)
select t.organisation_id, t.environment, t.network, t.from_address, s.token, 'sweep', t.sweep_id || ' ' || t.child_address_id, 0, t.raw_amount,
  c.id, c.nonce, case when t.network like 'tempo%' then null else t.nonce end
from sweep_transfers t join sweeps s on s.id = t.sweep_id left join chain_transactions c on c.id = t.chain_transaction_id
where t.status in ('planned', 'signed', 'sent');
