-- Ends of transfers without a response, in their order. The transfers of withdrawals never have one and are left out.
create index concurrently if not exists transfers_unreported on transfers (ended_at, id)
  where event_id is null and answered is null and purpose = 'transfer';
drop index concurrently if exists transfers_untold;
