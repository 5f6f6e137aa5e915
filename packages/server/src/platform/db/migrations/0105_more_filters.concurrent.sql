-- An index for each further filter of a list: the filter's column, then what the list is ordered by.
create index concurrently if not exists transfers_by_status on transfers (organisation_id, environment, status, id);
create index concurrently if not exists withdrawals_by_status on withdrawals (organisation_id, environment, status, id);
create index concurrently if not exists wallet_transactions_by_status on wallet_transactions (organisation_id, environment, wallet_id, status, id);
create index concurrently if not exists webhook_attempts_by_status on webhook_attempts (webhook_id, status, id);
create index concurrently if not exists audit_log_by_action on audit_log (organisation_id, action, sequence);
create index concurrently if not exists audit_log_by_target on audit_log (organisation_id, target, sequence);
create index concurrently if not exists audit_log_by_actor on audit_log (organisation_id,
  (coalesce(actor ->> 'apiKeyId', actor ->> 'accountId')), sequence);
create index concurrently if not exists audit_log_by_time on audit_log (organisation_id, created_at, sequence);
