-- The rows that an organisation has of a transaction. One transaction may have transfers to many organisations, and the index by hash alone read the rows of all.
create index concurrently if not exists wallet_transactions_of_transaction on wallet_transactions (network, tx_hash, organisation_id, log_index);
drop index concurrently if exists wallet_transactions_by_hash;
