-- Deposits: whose addresses are watched, what was seen to move, and how far each network was read.

create table watched_addresses (
  wallet_id text not null,
  -- The network that the wallet was made for, and the chain name that its owner gave. The address is watched on every network of its environment.
  network text not null,
  chain text not null,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  address bytea not null check (octet_length(address) = 20),
  -- Symbols of the tokens that the wallet was made for.
  tokens text[] not null,
  since timestamptz not null,
  until timestamptz,
  -- The transaction that wrote the row: by it a reader finds what was committed since it last read, in whatever order.
  written_in xid8 not null default pg_current_xact_id(),
  primary key (wallet_id, network)
);
create index watched_addresses_by_address on watched_addresses (address);
create index watched_addresses_by_writer on watched_addresses (written_in);

insert into watched_addresses (wallet_id, network, chain, organisation_id, environment, address, tokens, since)
select id, network, chain, organisation_id, environment, decode(substr(address, 3), 'hex'), supported_tokens, created_at
from byo_wallets where deleted_at is null;

-- One row for each wallet and direction that a transfer log concerns. Hashes in lower case, addresses EIP-55 checksummed.
create table wallet_transactions (
  id text primary key,
  organisation_id text not null,
  environment text not null check (environment in ('test', 'live')),
  wallet_id text not null,
  network text not null,
  -- The chain name as the wallet's owner gave it; for money on a network that the wallet was not made for, that network's own.
  chain text not null,
  tx_hash text not null,
  log_index integer not null,
  direction text not null check (direction in ('in', 'out')),
  -- transfer: ordinary. internal: between managed wallets of one tenant. unsupported: on a network or in a token that the wallet was not
  -- made for. fee: Tempo's fees. forward: the second leg of a transfer to a virtual address. held: kept by Tempo's guard of receive policies.
  kind text not null check (kind in ('transfer', 'internal', 'unsupported', 'fee', 'forward', 'held')),
  -- withdrawn: a reorganisation took its block; should the transaction come into another, the same row lives again.
  status text not null check (status in ('pending', 'confirmed', 'withdrawn')),
  token text not null,
  token_symbol text not null,
  decimals smallint not null,
  raw_amount numeric(78, 0) not null check (raw_amount > 0),
  from_address text not null,
  to_address text not null,
  block_number bigint not null,
  block_hash text not null,
  block_time timestamptz not null,
  -- What screening said of the sender of money that came in, and how much of the amount it froze.
  aml_status text not null default 'pending' check (aml_status in ('pending', 'clear', 'flagged')),
  frozen_raw_amount numeric(78, 0) not null default 0 check (frozen_raw_amount between 0 and raw_amount),
  -- The deposit.success that told of it. Once set it stays, so that nothing is told twice.
  event_id text,
  created_at timestamptz not null,
  -- When it first reached the chain's finality.
  confirmed_at timestamptz,
  withdrawn_at timestamptz
);
create unique index wallet_transactions_by_log on wallet_transactions (network, tx_hash, log_index, wallet_id, direction) where status <> 'withdrawn';
create index wallet_transactions_by_hash on wallet_transactions (network, tx_hash);
create index wallet_transactions_by_wallet on wallet_transactions (organisation_id, environment, wallet_id, id desc);
create index wallet_transactions_by_block on wallet_transactions (network, block_number) where status <> 'withdrawn';
create index wallet_transactions_pending on wallet_transactions (network, block_number) where status = 'pending';
create index wallet_transactions_to_screen on wallet_transactions (created_at) where aml_status = 'pending' and direction = 'in';

-- How far each network was read, and by whom. One process leads; what it writes, it writes while its epoch is the row's.
create table deposit_cursors (
  network text primary key,
  -- The last block that was read, -1 before the first; null until the network's head is known. checked: read a second time.
  scanned bigint,
  checked bigint,
  leader text,
  lease_until timestamptz,
  epoch bigint not null default 0
);

-- Hashes of the blocks that were read last, by which a reorganisation is seen.
create table scanned_blocks (
  network text not null,
  number bigint not null,
  hash text not null,
  primary key (network, number)
);
