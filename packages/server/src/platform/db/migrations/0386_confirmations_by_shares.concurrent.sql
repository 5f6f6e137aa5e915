-- Deposits are confirmed in shares of their organisations. Those about which the nodes were undecided are in a list of their
-- own, in the order of their last vote. The index wallet_transactions_pending stays for the previous release, which may run meanwhile.
alter table wallet_transactions add column if not exists undecided_at timestamptz;
create index concurrently if not exists wallet_transactions_unasked_by_block on wallet_transactions (network, block_number)
  where status = 'pending' and undecided_at is null;
create index concurrently if not exists wallet_transactions_unasked_by_organisation on wallet_transactions (network, organisation_id, block_number)
  where status = 'pending' and undecided_at is null;
create index concurrently if not exists wallet_transactions_undecided_by_time on wallet_transactions (network, undecided_at)
  where status = 'pending' and undecided_at is not null;
create index concurrently if not exists wallet_transactions_undecided_by_organisation on wallet_transactions (network, organisation_id, undecided_at)
  where status = 'pending' and undecided_at is not null;
