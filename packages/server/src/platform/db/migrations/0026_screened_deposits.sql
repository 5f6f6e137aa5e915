-- When the sender of each deposit is screened next, and in which order screenings of one deposit count.

alter table wallet_transactions add column aml_ticket bigint not null default 0;
alter table wallet_transactions add column aml_due_at timestamptz not null default '-infinity';
create index wallet_transactions_aml_due on wallet_transactions (aml_due_at)
  where direction = 'in' and status <> 'withdrawn' and aml_due_at < 'infinity';
create index wallet_transactions_by_sender on wallet_transactions (lower(from_address)) where direction = 'in';
create index wallet_transactions_frozen on wallet_transactions (organisation_id, environment, wallet_id)
  where frozen_raw_amount > 0 and status <> 'withdrawn';
