-- When the transfer of a pending refund is read next. A refund that an earlier commit makes is due at once.
alter table payment_refunds add column if not exists check_at timestamptz not null default now();
create index concurrently if not exists payment_refunds_due on payment_refunds (check_at) where status = 'pending';
create index concurrently if not exists payment_refunds_due_by_organisation on payment_refunds (organisation_id, check_at) where status = 'pending';
drop index concurrently if exists payment_refunds_pending;
