-- A payment from a wallet counts the signatures of all wallets of its share owner that may still be used.
create index concurrently if not exists reservations_open_of_organisations on reservations (network, organisation_id)
  where reason = 'transfer' and authorization_nonce is not null and ended_at is null;
