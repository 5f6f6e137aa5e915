-- Managed wallets: accounts of the organisation's seed, and the addresses derived from each. No key is here, only public halves.

-- The account that the next master wallet of a tenant takes: m/44'/60'/<account>'. Taken under the row's lock, so that none is skipped or given twice.
create table managed_wallet_accounts (
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  next_account integer not null check (next_account >= 0),
  primary key (organisation_id, environment)
);

create table master_wallets (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  account integer not null check (account >= 0),
  -- EIP-55 checksummed: m/44'/60'/<account>'/0/0.
  address text not null,
  -- The chain name that the caller sent, and the network that it resolved to.
  chain text not null,
  network text not null,
  name text,
  supported_tokens text[] not null,
  -- The version of the seed that it was derived from.
  key_version integer not null,
  -- The public node m/44'/60'/<account>'/0 (BIP-32), from which every address comes without the seed.
  public_key bytea not null check (octet_length(public_key) = 33),
  chain_code bytea not null check (octet_length(chain_code) = 32),
  -- The index that the next child takes; 0 is the wallet itself.
  next_child bigint not null default 1 check (next_child between 1 and 2147483648),
  created_at timestamptz not null,
  unique (organisation_id, environment, account),
  unique (organisation_id, environment, address)
);
create index master_wallets_by_tenant on master_wallets (organisation_id, environment, id desc);

create table child_addresses (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  master_wallet_id text not null references master_wallets (id),
  -- Last part of the path m/44'/60'/<account>'/0/<child_index>.
  child_index bigint not null check (child_index between 1 and 2147483647),
  -- EIP-55 checksummed.
  address text not null,
  name text,
  metadata jsonb not null,
  created_at timestamptz not null,
  unique (master_wallet_id, child_index),
  unique (organisation_id, environment, address)
);
