-- The frozen deposits of a place from the oldest on. Migration 0199 made no such index: an older one had its name, on other columns.
create index concurrently if not exists wallet_transactions_frozen_in_order on wallet_transactions (wallet_id, network, token, block_number, log_index, id)
  where direction = 'in' and frozen_raw_amount > 0;
drop index concurrently if exists wallet_transactions_frozen;
