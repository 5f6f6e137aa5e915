-- Whether an account was the first owner of an organisation that was deleted.
create index concurrently if not exists organisations_by_founder on organisations (founder_id) where founder_id is not null;
-- The deposits of a wallet that screening keeps on hold, by id.
create index concurrently if not exists wallet_transactions_by_hold on wallet_transactions (organisation_id, environment, wallet_id, id)
  where direction = 'in' and status <> 'withdrawn' and (aml_status = 'pending' and on_hold or frozen_raw_amount > 0);
