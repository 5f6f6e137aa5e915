-- The seeds of organisations' wallets, and key-encryption keys that take turns.

-- The key that seals now has none; one that was replaced opens what it sealed until nothing is under it any more.
alter table key_encryption_keys add column retired_at timestamptz;
create unique index key_encryption_keys_current on key_encryption_keys ((true)) where retired_at is null;

create table wallet_seeds (
  id text primary key,
  organisation_id text not null references organisations (id),
  environment text not null check (environment in ('test', 'live')),
  algorithm text not null,
  version integer not null,
  fingerprint text not null references key_encryption_keys (fingerprint),
  wrapped_data_key bytea not null,
  -- The 64 bytes of BIP-39's seed, sealed.
  sealed bytea not null,
  created_at timestamptz not null,
  unique (organisation_id, environment)
);
create index wallet_seeds_by_fingerprint on wallet_seeds (fingerprint, id);
create index sealed_keys_by_fingerprint on sealed_keys (fingerprint, kid);
