-- A payment from a wallet counts the signatures of the wallet that may still be used.
create index concurrently if not exists reservations_open_authorizations on reservations (network, owner)
  where authorization_nonce is not null and ended_at is null;
