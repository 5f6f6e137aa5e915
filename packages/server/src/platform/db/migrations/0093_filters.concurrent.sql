-- An index for each filter of a list: the filter's column, then the id, which sorts by time. Two indexes on the id of payments go: nothing
-- lists payments by it.
create index concurrently if not exists payments_by_route on payments (organisation_id, environment, route, log_id);
create index concurrently if not exists payments_by_wallet_log on payments (organisation_id, environment, wallet_id, log_id);
create index concurrently if not exists payments_by_key on payments (organisation_id, environment, api_key_id, log_id);
create index concurrently if not exists payments_by_protocol on payments (organisation_id, environment, protocol, log_id);
drop index concurrently if exists payments_by_tenant;
drop index concurrently if exists payments_by_wallet;
create index concurrently if not exists events_by_type on events (organisation_id, environment, type, id);
create index concurrently if not exists wallet_transactions_by_token on wallet_transactions (organisation_id, environment, wallet_id, token_symbol, id);
create index concurrently if not exists wallet_transactions_by_network on wallet_transactions (organisation_id, environment, wallet_id, network, id);
create index concurrently if not exists wallet_transactions_by_direction on wallet_transactions (organisation_id, environment, wallet_id, direction, id);
create index concurrently if not exists vaults_by_status on vaults (organisation_id, environment,
  (case when sealed_at is not null then 'sealed' when persisted_at is not null then 'persisted' else 'active' end), id);
create index concurrently if not exists transfers_by_wallet on transfers (organisation_id, environment, wallet_id, id);
