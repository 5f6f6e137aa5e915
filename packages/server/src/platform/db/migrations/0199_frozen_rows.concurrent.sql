-- The frozen deposits of a place from the oldest on, without the tainted ones whose money has left.
create index concurrently if not exists wallet_transactions_frozen on wallet_transactions (wallet_id, network, token, block_number, log_index, id)
  where direction = 'in' and frozen_raw_amount > 0;
