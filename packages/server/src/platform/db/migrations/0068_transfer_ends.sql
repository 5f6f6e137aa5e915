-- What a transfer's end means: failed says refunded, and a refund that does not come is reported beside it.

alter table transfers
  -- The transfer.refund_overdue that reported it.
  add column refund_overdue_event_id text;

-- Transfers that ended while their partner owed the refund are followed again, and their true end is published.
update transfers set status = 'pending', reason = null, ended_at = null, event_id = null, look_at = refund_look_at
  where reason = 'refund-outstanding' and refund_look_at is not null;
drop index transfers_refund_to_look_at;
alter table transfers drop column refund_look_at;

-- By it the watcher knows the sweep among what moves between a tenant's own wallets.
create index sweep_transfers_by_sender on sweep_transfers (network, asset, from_address, to_address);

-- The newest block of the wallet's own network when its watch ended: what comes above it is not the wallet's. Null where no node said so.
alter table watched_addresses add column until_block bigint;
