-- When an approved payment that was not used, and could not be ended, is tried again.
alter table wallet_payments add column if not exists end_after timestamptz;
-- The payments to end, in order. The index on pay_until counts those that are overdue.
create index concurrently if not exists wallet_payments_to_end on wallet_payments ((coalesce(end_after, pay_until))) where draft is null and pay_until is not null;
