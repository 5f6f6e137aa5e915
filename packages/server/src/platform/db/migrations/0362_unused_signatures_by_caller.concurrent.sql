-- The API key or person that had the signature of a payment made. One caller holds at most a part of what the wallets of its organisation may hold unused.
alter table reservations add column if not exists signed_by text;
create index concurrently if not exists reservations_unused_of_callers on reservations (network, signed_by)
  where signed_by is not null and authorization_nonce is not null and ended_at is null and used_at is null;
