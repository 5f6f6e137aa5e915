-- Deposits and wallets that are due for screening are listed in shares of their organisations, for each environment.
create index concurrently if not exists wallet_transactions_aml_due_by_environment on wallet_transactions (environment, aml_due_at)
  where direction = 'in' and status <> 'withdrawn' and aml_due_at < 'infinity';
create index concurrently if not exists wallet_transactions_aml_due_by_organisation on wallet_transactions (environment, organisation_id, aml_due_at)
  where direction = 'in' and status <> 'withdrawn' and aml_due_at < 'infinity';
drop index concurrently if exists wallet_transactions_aml_due;
create index concurrently if not exists byo_wallets_due_by_environment on byo_wallets (environment, aml_due_at) where deleted_at is null;
create index concurrently if not exists byo_wallets_due_by_organisation on byo_wallets (environment, organisation_id, aml_due_at) where deleted_at is null;
drop index concurrently if exists byo_wallets_due;
