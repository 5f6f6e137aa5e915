-- The oldest items of each queue by network, which the metrics count apart from those of all others.
-- Only a statement that names this bound can use it: the relayer's own statements have better indexes.
create index concurrently if not exists relays_waiting_by_network on relays (network, created_at) where state = 'waiting' and created_at > '-infinity';
create index concurrently if not exists chain_transactions_of_settlers on chain_transactions (network, created_at)
  where status <> 'final' and purpose = 'relays';
create index concurrently if not exists chain_transactions_of_wallets on chain_transactions (network, created_at)
  where status <> 'final' and purpose <> 'relays';
create index concurrently if not exists transfers_unknown_by_network on transfers (from_network, unknown_at)
  where unknown_at is not null and ended_at is null;
create index concurrently if not exists events_postponed_in_order on events_postponed (event_id);
