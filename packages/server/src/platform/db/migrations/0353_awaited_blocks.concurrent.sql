-- The number of the block at which a transfer was settled: transfers up to the final block are checked, and no others.
alter table transfers add column if not exists settled_block bigint;
-- Since when a block shows that the authorization is used; null again if that block is gone. Used ones do not count against the most that may be unused.
alter table reservations add column if not exists used_at timestamptz;
create index concurrently if not exists transfers_awaiting_blocks on transfers (from_network, coalesce(settled_block, 0), settled_block_hash)
  where finality_at is not null;
drop index concurrently if exists transfers_to_finalize;
-- A payment from a wallet counts the signatures that may still be used: of the wallet, and of all wallets of its share owner.
create index concurrently if not exists reservations_unused_authorizations on reservations (network, owner)
  where authorization_nonce is not null and ended_at is null and used_at is null;
create index concurrently if not exists reservations_unused_of_organisations on reservations (network, organisation_id)
  where reason = 'transfer' and authorization_nonce is not null and ended_at is null and used_at is null;
drop index concurrently if exists reservations_open_authorizations;
drop index concurrently if exists reservations_open_of_organisations;
