-- By it a transfer finds the others that the same transaction has paid back.
create index transfers_by_refund on transfers (lower(refund_tx_hash)) where refund_tx_hash is not null;
