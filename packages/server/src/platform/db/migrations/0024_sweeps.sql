-- Sweeps: children's tokens moved to their master wallet by authorisations that the children sign and the settler sends.

-- What is swept by itself, or null: { token, rawAmountMin, everyMinutes }.
alter table master_wallets add column auto_sweep jsonb;
alter table master_wallets add column auto_sweep_due_at timestamptz;
create index master_wallets_to_sweep on master_wallets (auto_sweep_due_at) where auto_sweep is not null;

-- How far the children of a wallet with very many were looked at for a token; the next sweep goes on behind it.
create table sweep_scans (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  master_wallet_id text not null references master_wallets (id),
  token text not null,
  -- The index of the child that was looked at last.
  scanned_to bigint not null,
  primary key (master_wallet_id, token)
);

create table sweeps (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  master_wallet_id text not null references master_wallets (id),
  chain text not null,
  network text not null,
  token text not null,
  decimals smallint not null,
  trigger text not null check (trigger in ('request', 'automatic')),
  -- Whether children were left for another sweep.
  is_partial boolean not null,
  status text not null check (status in ('sweeping', 'completed')),
  created_at timestamptz not null,
  completed_at timestamptz
);
create index sweeps_by_wallet on sweeps (organisation_id, environment, master_wallet_id, id desc);

create table sweep_transfers (
  sweep_id text not null references sweeps (id),
  child_address_id text not null references child_addresses (id),
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  network text not null,
  -- EIP-55 checksummed, like the two accounts.
  asset text not null,
  from_address text not null,
  to_address text not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  -- What screening had frozen at the child when the sweep was asked for; more than that, and the transfer is not sent.
  frozen_raw_amount numeric(78, 0) not null check (frozen_raw_amount >= 0),
  -- The authorisation (EIP-3009), fixed before anybody signs it: whatever dies when, it can move the money once.
  nonce bytea not null check (octet_length(nonce) = 32),
  valid_before timestamptz not null,
  -- r, s and v in 65 bytes.
  signature bytea check (octet_length(signature) = 65),
  -- planned: to be signed; signed: waits for a transaction; sent: in one, which may not be mined yet.
  status text not null check (status in ('planned', 'signed', 'sent', 'swept', 'failed')),
  attempt integer not null default 0,
  chain_transaction_id text references chain_transactions (id),
  -- Its transaction is final without it, and the chain must say what became of it.
  unresolved boolean not null default false,
  tx_hash text,
  failure_reason text,
  created_at timestamptz not null,
  primary key (sweep_id, child_address_id)
);
-- What a child holds of a token is moved by one authorisation at a time.
create unique index sweep_transfers_open on sweep_transfers (network, asset, from_address) where status in ('planned', 'signed', 'sent');
create index sweep_transfers_to_send on sweep_transfers (network, created_at) where status in ('planned', 'signed');
create index sweep_transfers_in_transaction on sweep_transfers (chain_transaction_id) where chain_transaction_id is not null;
create index sweep_transfers_unresolved on sweep_transfers (network, created_at) where unresolved;
