-- The durable sender: one lane per network and account, its transactions and every signed form of them; and sealed keys.

create table lanes (
  network text not null,
  sender text not null,
  next_nonce bigint not null,
  primary key (network, sender)
);

create table chain_transactions (
  id text primary key,
  network text not null,
  sender text not null,
  nonce bigint not null,
  to_address text not null,
  data bytea not null,
  value numeric(78, 0) not null,
  gas_limit numeric(78, 0) not null,
  purpose text not null,
  -- planned: nonce taken; sent: signed bytes stored, and from then on they may be anywhere; mined: in a block; final: deep enough.
  status text not null check (status in ('planned', 'sent', 'mined', 'final')),
  mined_hash text,
  mined_block bigint,
  gas_used numeric(78, 0),
  effective_gas_price numeric(78, 0),
  last_broadcast_at timestamptz,
  created_at timestamptz not null,
  unique (network, sender, nonce)
);
create index chain_transactions_open on chain_transactions (network, sender, nonce) where status <> 'final';

create table transaction_attempts (
  transaction_id text not null references chain_transactions (id),
  sequence integer not null,
  network text not null,
  hash text not null,
  raw bytea not null,
  max_fee numeric(78, 0) not null,
  priority_fee numeric(78, 0) not null,
  created_at timestamptz not null,
  primary key (transaction_id, sequence),
  unique (network, hash)
);

create table key_encryption_keys (
  fingerprint text primary key,
  created_at timestamptz not null
);

create table sealed_keys (
  kid text primary key,
  purpose text not null,
  algorithm text not null,
  fingerprint text not null references key_encryption_keys (fingerprint),
  wrapped_data_key bytea not null,
  sealed bytea not null,
  created_at timestamptz not null,
  retired_at timestamptz
);
create unique index sealed_keys_current on sealed_keys (purpose) where retired_at is null;
