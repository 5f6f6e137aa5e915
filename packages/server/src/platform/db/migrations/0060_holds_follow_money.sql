-- What of an incoming row came, through wallets of the same organisation, from a flagged sender. The frozen amount is what is left of it.
alter table wallet_transactions add column tainted_raw_amount numeric(78, 0) not null default 0 check (tainted_raw_amount between 0 and raw_amount);

-- Wallets that received flagged or tainted money, whatever became of it.
create index wallet_transactions_tainted on wallet_transactions (organisation_id, environment, wallet_id)
  where direction = 'in' and (aml_status = 'flagged' or tainted_raw_amount > 0 or frozen_raw_amount > 0);

-- A wallet's ledger of one token, in the order of the chain.
create index wallet_transactions_ledger on wallet_transactions (wallet_id, network, token, block_number, log_index) where status <> 'withdrawn';

-- What is on hold until its sender is screened, and what is not final.
create index wallet_transactions_on_hold on wallet_transactions (organisation_id, environment, wallet_id)
  where direction = 'in' and status <> 'withdrawn' and (aml_status = 'pending' or status = 'pending');

-- Money between wallets of one organisation is judged where it came in.
update wallet_transactions set aml_status = 'clear', aml_due_at = 'infinity' where kind = 'internal' and direction = 'in' and aml_status = 'pending';
